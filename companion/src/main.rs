fn main() {
    let p = chase_companion::program::Program::start(1, 0);
    match p { Ok(p) => println!("{:?}", p.totals()), Err(e) => { println!("{e}"); println!("{e:#?}") } }
}
