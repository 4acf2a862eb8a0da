// panics: panics through functions with destructors, caught further up. For each line: "sum N".
use std::io::BufRead;
use std::panic;
struct Guard;
impl Drop for Guard {
    fn drop(&mut self) {
        dropped(1);
    }
}
#[no_mangle]
#[inline(never)]
pub extern "C" fn dropped(n: u64) -> u64 {
    unsafe { std::ptr::read_volatile(&n) + 1 } // a call that is worth making; Debian 12's compiler has no black_box
}
#[no_mangle]
#[inline(never)]
pub fn risky(n: u64) -> u64 {
    let _g = Guard;
    if n % 3 == 0 {
        panic!("three");
    }
    n
}
#[no_mangle]
#[inline(never)]
pub fn passes(n: u64) -> u64 {
    risky(n) + risky(n + 1)
}
#[no_mangle]
#[inline(never)]
pub fn caught(n: u64) -> u64 {
    panic::catch_unwind(|| passes(n)).unwrap_or(7)
}
fn main() {
    panic::set_hook(Box::new(|_| {}));
    println!("ready");
    for _line in std::io::stdin().lock().lines() {
        let ts: Vec<_> = (0..4)
            .map(|t| std::thread::spawn(move || (0..3000u64).map(|i| caught(i + t)).sum::<u64>()))
            .collect();
        let sum: u64 = ts.into_iter().map(|t| t.join().unwrap()).sum();
        println!("sum {}", sum);
    }
}
