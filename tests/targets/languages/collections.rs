// String, Vec, slices and texts of Rust: each call prints the line that ktrace has to show of it.
#[derive(Clone)]
pub enum Shape {
    Unit,
    Named(String),
    Many(Vec<u16>),
}

#[inline(never)]
pub fn text(t: String, v: Vec<i32>) -> usize {
    println!("text(t={:?}, v={:?})", t, v);
    t.len() + v.len()
}

#[inline(never)]
pub fn slices(s: &[i64], t: &str) -> usize {
    println!("slices(s={:?}, t={:?})", s, t);
    s.len() + t.len()
}

#[inline(never)]
pub fn nested(v: Vec<Vec<u8>>, names: Vec<String>) -> usize {
    println!("nested(v={:?}, names={:?})", v, names);
    v.len() + names.len()
}

#[inline(never)]
pub fn shapes(v: Vec<Shape>, o: Option<Vec<i16>>) -> usize {
    println!("shapes(v=[Unit, Named(\"n\"), Many([3, 4])], o=Some({:?}))", o.as_ref().unwrap());
    v.len() + o.unwrap().len()
}

fn main() {
    let mut n = text("owned".to_string(), vec![7, -8]);
    n += slices(&[1, 2, 3], "borrowed");
    n += nested(vec![vec![1, 2], vec![]], vec!["a".to_string(), "b c".to_string()]);
    n += shapes(vec![Shape::Unit, Shape::Named("n".to_string()), Shape::Many(vec![3, 4])], Some(vec![5]));
    std::process::exit((n == 0) as i32);
}
