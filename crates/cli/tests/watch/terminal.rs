//! A pseudo-terminal with the program in it, and the screen that results from its output.

use std::io::{Read, Write};
use std::num::NonZero;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

/// A program that is killed when dropped.
pub(crate) struct Terminal {
    master: Box<dyn MasterPty>,
    child: Box<dyn Child + Send + Sync>,
    keys: Box<dyn Write + Send>,
    written: Receiver<Vec<u8>>,
    screen: vt100::Parser,
    was_cooked: bool,
}

impl Terminal {
    /// Starts `rulekeep watch` on a store, in 30 lines of 120 columns.
    pub(crate) fn watch(store: &Path, more: &[&str]) -> Self {
        let pair = native_pty_system().openpty(size(30, 120)).unwrap();
        let was_cooked = is_cooked(&*pair.master);
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_rulekeep"));
        command.args(["watch", "--store"]);
        command.arg(store);
        command.args(more);
        command.env("TERM", "xterm-256color");
        let child = pair.slave.spawn_command(command).unwrap();
        let mut output = pair.master.try_clone_reader().unwrap();
        let (tell, written) = mpsc::channel();
        thread::spawn(move || {
            let mut part = [0; 4096];
            // The terminal ends once the program and the other end have.
            while let Ok(length @ 1..) = output.read(&mut part) {
                if tell.send(part[..length].to_vec()).is_err() {
                    return;
                }
            }
        });
        let keys = pair.master.take_writer().unwrap();
        // If it stayed open here, the other end would keep its data after the program's end.
        drop(pair.slave);
        Self {
            master: pair.master,
            child,
            keys,
            written,
            screen: vt100::Parser::new(some(30), some(120), 0),
            was_cooked,
        }
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    pub(crate) fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.child.process_id().unwrap());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    }

    pub(crate) fn resize(&mut self, rows: u16, columns: u16) {
        self.screen.screen_mut().set_size(some(rows), some(columns));
        self.master.resize(size(rows, columns)).unwrap();
    }

    #[track_caller]
    pub(crate) fn wait_for(&mut self, text: &str) {
        self.wait(text, |screen| screen.contents().contains(text));
    }

    #[track_caller]
    pub(crate) fn wait_for_line(&mut self, line: usize, text: &str) {
        self.wait(text, |screen| screen.contents().lines().nth(line).is_some_and(|line| line.contains(text)));
    }

    /// Waits until the screen fulfills a condition.
    #[track_caller]
    fn wait(&mut self, what: &str, is_so: impl Fn(&vt100::Screen) -> bool) {
        let started = Instant::now();
        while !is_so(self.screen.screen()) {
            let left = DEADLINE.saturating_sub(started.elapsed());
            match self.written.recv_timeout(left) {
                Ok(part) => self.screen.process(&part),
                Err(error) => panic!("{what:?} does not come ({error}):\n{}", self.screen.screen().contents()),
            }
        }
    }

    pub(crate) fn is_raw(&self) -> bool {
        !is_cooked(&*self.master)
    }

    /// Checks that the program ends, successfully or not, with the screen, the cursor and the terminal's modes
    /// restored.
    #[track_caller]
    pub(crate) fn ends_restored(mut self, well: bool) {
        let started = Instant::now();
        while let Ok(part) = self.written.recv_timeout(DEADLINE.saturating_sub(started.elapsed())) {
            self.screen.process(&part);
        }
        assert_eq!(self.child.wait().unwrap().success(), well, "{}", self.screen.screen().contents());
        let screen = self.screen.screen();
        assert!(!screen.alternate_screen(), "the lists are still in front");
        assert!(!screen.hide_cursor(), "the cursor is hidden");
        assert_eq!(is_cooked(&*self.master), self.was_cooked, "lines are not edited or not echoed");
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns whether lines are edited and echoed, as a shell expects.
fn is_cooked(master: &dyn MasterPty) -> bool {
    let modes = format!("{:?}", master.get_termios().expect("a terminal has modes").local_flags);
    modes.contains("ICANON") && modes.contains("ECHO |")
}

fn some(length: u16) -> NonZero<u16> {
    NonZero::new(length).unwrap()
}

const fn size(rows: u16, cols: u16) -> PtySize {
    PtySize { rows, cols, pixel_width: 0, pixel_height: 0 }
}

const DEADLINE: Duration = Duration::from_secs(60);
