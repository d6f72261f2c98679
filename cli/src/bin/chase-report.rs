//! `chase-report`.

use std::process::ExitCode;

fn main() -> ExitCode {
    chase_report_cli::main()
}
