//! `rulekeep fleet`: an organisation of governors, with its hub, its witness and its orders.
//!
//! | file | commands |
//! |---|---|
//! | `link.rs` | calls of a hub |
//! | `orders.rs` | orders, and `sign` |
//! | `read.rs` | `who`, `coverage`, `query`, `bundle`, `verify` |
//! | `run.rs` | `hub`, `witness`, `key`, `enrol` |
//! | `terms.rs` | stages and amounts as people write them |

mod link;
mod orders;
mod read;
mod run;
mod terms;

use std::process::ExitCode;

use clap::Subcommand;

use crate::operate::finish;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Serves a hub of the organisation over HTTP, on its PostgreSQL database
    #[command(
        after_help = "Examples:\n  rulekeep fleet hub --database postgres://rulekeep@db.example.com/fleet --key log.key --listen 127.0.0.1:8080 --publish log --read-token-file token"
    )]
    Hub(run::HubOptions),
    /// Serves a witness, which cosigns checkpoints of logs that only grew
    #[command(
        after_help = "Examples:\n  rulekeep fleet witness --key witness.key --log \"$(cat log.pub)\" --folder witness --listen 127.0.0.1:8080"
    )]
    Witness(run::WitnessOptions),
    /// Makes the key of an operator, a log or a witness, and prints its public half
    #[command(
        after_help = "Examples:\n  rulekeep fleet key dana --out dana.key\n  rulekeep fleet key w1 --witness --out w1.key"
    )]
    Key(run::KeyOptions),
    /// Prints an invitation, by which governors become members
    #[command(after_help = "Examples:\n  rulekeep fleet enrol --group payments --uses 100 --for 1d --sign ann.key")]
    Enrol(run::EnrolOptions),
    #[command(flatten)]
    Order(orders::Verb),
    /// Adds signatures to an order in a file, after showing it
    #[command(after_help = "Examples:\n  rulekeep fleet sign order.json --sign bob.key")]
    Sign(orders::SignOptions),
    /// Lists the members, with the order in force at each and its permit
    #[command(after_help = "Examples:\n  rulekeep fleet who\n  rulekeep fleet who --json")]
    Who(read::Who),
    /// Shows how much of each member's log is anchored and copied; the exit code is 1 if one is in trouble
    #[command(after_help = "Examples:\n  rulekeep fleet coverage\n  rulekeep fleet coverage desk-1")]
    Coverage(read::Coverage),
    /// Prints copied records of all members as lines of JSON, newest first
    #[command(after_help = "Examples:\n  rulekeep fleet query \"agent=support-1 decision=deny from=1d\"")]
    Query(read::Query),
    /// Prints the bundle by which a stranger verifies a copied record
    #[command(after_help = "Examples:\n  rulekeep fleet bundle prf_01m89vy2x6z7e9r8r000000003 > new-bundle.json")]
    Bundle(read::BundleOptions),
    /// Verifies a bundle offline
    #[command(
        after_help = "Examples:\n  rulekeep fleet verify bundle.json --organisation \"$(cat log.pub)\" --operator \"$(cat ann.pub)\""
    )]
    Verify(read::Verify),
}

/// Runs a subcommand.
pub(crate) fn run(command: Command) -> ExitCode {
    let done = match command {
        Command::Hub(options) => run::hub(options),
        Command::Witness(options) => run::witness(&options),
        Command::Key(options) => run::key(&options),
        Command::Enrol(options) => run::enrol(options),
        Command::Order(verb) => orders::give(verb),
        Command::Sign(options) => orders::sign(&options),
        Command::Who(options) => read::who(&options),
        Command::Coverage(options) => read::coverage(&options),
        Command::Query(options) => read::query(&options),
        Command::Bundle(options) => read::bundle(&options),
        Command::Verify(options) => read::verify(&options),
    };
    finish("fleet", done)
}
