// Functions of types and generic ones. Prints "NAME called N" of each.
pub struct Point {
    x: i32,
}
pub struct Pair<T> {
    pub a: T,
    pub b: T,
}
impl Point {
    #[inline(never)]
    pub fn shift(&mut self, d: i32) -> i32 {
        self.x += d;
        self.x
    }
}
impl<T: std::fmt::Debug> Pair<T> {
    #[inline(never)]
    pub fn first(&self) -> usize {
        format!("{:?} {:?}", self.a, self.b).len()
    }
}
#[inline(never)]
pub fn gen<T: std::fmt::Debug>(t: T) -> usize {
    format!("{t:?}").len()
}
fn main() {
    let sum = gen(5i32) + gen("five") + Point { x: 1 }.shift(4) as usize + Pair { a: 1i32, b: 2 }.first();
    println!("gen called 2\nPoint::shift called 1\nPair::first called 1\nsum {sum}");
}
