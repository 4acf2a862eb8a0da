// Enums with values, as parameters and results. Prints the lines of its calls as ktrace has to, but for addresses.
#[derive(Clone, Copy)]
pub enum Shape {
    Unit,
    Circle(f64),
    Rect { w: u32, h: u32 },
    Line(i8, Option<u16>),
}
#[derive(Clone, Copy)]
pub enum Only {
    One(u64, u64, u64),
}
#[inline(never)]
pub fn shape(s: &Shape, o: &Option<Shape>, one: &Only, b: &Option<Box<i32>>) -> u64 {
    std::thread::yield_now();
    (match s {
        Shape::Unit => 0,
        Shape::Circle(f) => *f as u64,
        Shape::Rect { w, h } => (w * h) as u64,
        Shape::Line(a, b) => a.unsigned_abs() as u64 + b.unwrap_or(0) as u64,
    }) + o.is_some() as u64 + b.is_some() as u64 + match one { Only::One(a, _, _) => *a }
}
fn main() {
    let one = Only::One(1, 2, 3);
    println!("shape(s=Unit, o=None, one=One(1, 2, 3), b=None)");
    println!("shape(s=Circle(1.5), o=Some(Unit), one=One(1, 2, 3), b=Some(*))");
    println!("shape(s=Rect{{.w=3, .h=4}}, o=Some(Rect{{.w=5, .h=6}}), one=One(1, 2, 3), b=None)");
    println!("shape(s=Line(-2, Some(7)), o=Some(Line(1, None)), one=One(1, 2, 3), b=None)");
    let mut sum = shape(&Shape::Unit, &None, &one, &None);
    sum += shape(&Shape::Circle(1.5), &Some(Shape::Unit), &one, &Some(Box::new(3)));
    sum += shape(&Shape::Rect { w: 3, h: 4 }, &Some(Shape::Rect { w: 5, h: 6 }), &one, &None);
    sum += shape(&Shape::Line(-2, Some(7)), &Some(Shape::Line(1, None)), &one, &None);
    println!("sum {sum}");
}
