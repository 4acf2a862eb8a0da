// parameters: what Rust passes and returns as C does, and what in a way of its own.
use std::io::BufRead;

#[derive(Clone, Copy)]
struct Halves {
    a: f32,
    b: f32,
}
struct Words {
    a: u64,
    b: u64,
}
struct Large {
    a: [u64; 4],
}

#[inline(never)]
fn keep<T>(value: &T) {
    unsafe { std::ptr::read_volatile(&(value as *const T)) };
}

#[inline(never)]
fn scalars(a: i32, b: bool, c: char, d: f64, e: u8, f: f32) -> i64 {
    keep(&(a, b, c, d, e, f));
    a as i64 * e as i64
}

#[inline(never)]
fn texts(s: &str, t: &[u8], n: i32) -> usize {
    keep(&(s, t));
    s.len() * t.len() * n as usize
}

/// Its fourth text has one register left, where there are six.
#[inline(never)]
fn split<'a>(a: i32, b: &'a str, c: &str, d: &str, e: i32) -> &'a str {
    keep(&(a, c, d, e));
    &b[(a + e - 11) as usize..]
}

#[inline(never)]
fn unused(_a: i32, s: &str, n: u16) -> u32 {
    keep(&s);
    n as u32
}

#[inline(never)]
fn words(w: Words, n: i32) -> Words {
    keep(&(&w, n));
    Words { a: w.b, b: w.a + n as u64 }
}

#[inline(never)]
fn halves(h: Halves, n: i32) -> Halves {
    keep(&(h, n));
    Halves { a: h.b, b: h.a }
}

#[inline(never)]
fn maybe(o: Option<i32>, n: i32) -> Option<i32> {
    keep(&(o, n));
    o.map(|i| i + n)
}

#[inline(never)]
fn reference<'a>(o: Option<&'a i32>, m: (), n: i32) -> Option<&'a i32> {
    keep(&(o, m, n));
    o
}

#[inline(never)]
fn large(l: Large, n: i32) -> u64 {
    keep(&l);
    l.a[2] + n as u64
}

#[inline(never)]
fn made(n: i32) -> Large {
    keep(&n);
    Large { a: [n as u64; 4] }
}

/// All callers pass the same, which an optimizer puts into the function instead.
#[inline(never)]
fn constant(n: i32, f: f64) -> i32 {
    keep(&n);
    keep(&f);
    n
}

/// The debug information tells a function as a pointer, but nothing is passed.
#[inline(never)]
fn applied<F: Fn(i32) -> i32>(f: F, n: i32) -> i32 {
    keep(&n);
    f(n)
}

/// Nothing tells that it is called in C's way.
#[allow(improper_ctypes_definitions)]
#[inline(never)]
extern "C" fn packed(h: Halves, n: i32) -> Halves {
    keep(&(h, n));
    Halves { a: h.b, b: h.a }
}

fn main() {
    println!("ready");
    let n = std::env::args().count() as i32 + 6; // 7, which no optimizer knows
    for _ in std::io::stdin().lock().lines() {
        let mut sum = scalars(n - 10, n == 7, 'x', n as f64 / 2.0, 200, n as f32) as f64;
        sum += texts(&"hello!"[..n as usize - 2], &[1, 2, 3, 4][..n as usize - 5], n) as f64;
        sum += split(n, &"abcdefg"[..n as usize], "c", "dd", n - 3).len() as f64;
        sum += unused(n, "abc", n as u16 + 1) as f64;
        let w = words(Words { a: n as u64, b: 2 }, n);
        let (h, p) = (halves(Halves { a: 1.5, b: n as f32 }, n), packed(Halves { a: 1.5, b: n as f32 }, n));
        sum += (w.a * w.b) as f64 + (h.a * h.b * p.a * p.b) as f64;
        sum += (maybe(Some(n), n).unwrap_or(0) + reference(Some(&n), (), n).unwrap_or(&0)) as f64;
        sum += large(Large { a: [1, 2, n as u64, 4] }, n) as f64 + made(n).a[3] as f64;
        sum += constant(5, 2.5) as f64;
        sum += applied(i32::wrapping_neg, n) as f64;
        println!("sum {}", sum);
    }
}
