//! `rulekeep watch`: a dashboard in the terminal. It shows decisions as they come, and escalations can be answered by
//! key press.
//!
//! A thread makes the calls, so that the screen reacts to keys even during a long call.
//!
//! | file | subject |
//! |---|---|
//! | `look.rs` | the data on the screen, from the answers of calls |
//! | `screen.rs` | the state of the screen, and keys |
//! | `draw.rs` | drawing the screen |
//! | `tests.rs` | the screen on a store |

mod draw;
mod look;
mod screen;

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event};

use crate::client::Client;
use crate::home::Home;
use look::{Look, Looking};
use screen::{Answer, Asked, Screen};

/// The reviewer at the screen, and the store.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  rulekeep watch\n  rulekeep watch --reviewer operator")]
pub struct Options {
    /// The folder of a store that no other process has open, instead of the one in the home
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
    /// The reviewer in whose name escalations are answered; without it, they are only shown
    #[arg(long, value_name = "NAME")]
    reviewer: Option<String>,
}

/// Shows the dashboard of a store that no other process has open, or of the one in the home, for which answering needs
/// the operator's key. The terminal is always restored.
pub(crate) fn main(options: &Options) -> Result<ExitCode, String> {
    let client = match (&options.store, &options.reviewer) {
        (Some(store), _) => Client::writing_folder(store, None)?,
        (None, Some(_)) => Client::operating(&Home::find()?)?,
        (None, None) => Client::reading(&Home::find()?)?,
    };
    run(&client, options).map(|()| ExitCode::SUCCESS)
}

fn run(client: &Client, options: &Options) -> Result<(), String> {
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return Err("expected a terminal on standard input and output; use `rulekeep report` for a file".to_owned());
    }
    let unusable = |error: io::Error| format!("the terminal cannot be used: {error}");
    let is_ended = ended_by_signals().map_err(unusable)?;
    // A service that does not answer is reported before the screen is taken over.
    let mut looking = Looking::default();
    let first = looking.look(client)?;
    let mut screen = Screen::new(options.reviewer.clone(), first);
    let (answer, answers) = mpsc::channel();
    let (tell, told) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(move || keep_looking(client, looking, &answers, &tell));
        let shown =
            ratatui::try_init().and_then(|mut terminal| show(&mut terminal, &mut screen, &answer, &told, &is_ended));
        // Restored before waiting for the thread, which may be in a long call.
        let restored = ratatui::try_restore();
        drop(answer);
        shown.and(restored).map_err(unusable)
    })
}

/// An event for the screen.
enum News {
    Look(Result<Look, String>),
    Answered(Result<String, String>),
}

/// Makes the calls: those for the screen twice a second, and answers at once. Ends when the screen is gone.
fn keep_looking(client: &Client, mut looking: Looking, answers: &Receiver<Answer>, tell: &Sender<News>) {
    loop {
        let news = match answers.recv_timeout(BETWEEN_LOOKS) {
            Ok(answer) => News::Answered(answer.send(client)),
            Err(RecvTimeoutError::Timeout) => News::Look(looking.look(client)),
            Err(RecvTimeoutError::Disconnected) => return,
        };
        let is_answer = matches!(news, News::Answered(_));
        // If the screen has gone, the next iteration ends the loop.
        let _ = tell.send(news);
        if is_answer {
            let _ = tell.send(News::Look(looking.look(client)));
        }
    }
}

fn show(
    terminal: &mut DefaultTerminal,
    screen: &mut Screen,
    answer: &Sender<Answer>,
    told: &Receiver<News>,
    is_ended: &AtomicBool,
) -> io::Result<()> {
    while !is_ended.load(Ordering::Relaxed) {
        while let Ok(news) = told.try_recv() {
            match news {
                News::Look(look) => screen.take(look),
                News::Answered(said) => screen.message = Some(said.unwrap_or_else(|error| error)),
            }
        }
        terminal.draw(|frame| draw::all(frame, screen))?;
        if !event::poll(BETWEEN_DRAWINGS)? {
            continue;
        }
        let Event::Key(key) = event::read()? else { continue };
        match screen.key(key) {
            Asked::Quit => break,
            Asked::Answer(asked) => drop(answer.send(asked)),
            Asked::Nothing => {}
        }
    }
    Ok(())
}

/// Returns a flag that SIGTERM, SIGHUP and SIGINT set, so that they end the dashboard like its own key.
fn ended_by_signals() -> io::Result<Arc<AtomicBool>> {
    let is_ended = Arc::new(AtomicBool::new(false));
    #[cfg(unix)]
    for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP, signal_hook::consts::SIGINT] {
        // The second signal ends the process, even if a call hangs.
        signal_hook::flag::register_conditional_default(signal, Arc::clone(&is_ended))?;
        signal_hook::flag::register(signal, Arc::clone(&is_ended))?;
    }
    Ok(is_ended)
}

const BETWEEN_LOOKS: Duration = Duration::from_millis(500);
const BETWEEN_DRAWINGS: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests;
