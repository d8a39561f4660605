//! Which form an input has, and the reader of each form.
//!
//! A structured form is taken only where its shape is plain; everything else is
//! read as English. `name` reads the names of tools and actions for all of them.

mod dangers;
mod embedded;
mod http;
mod name;
mod place;
mod prose;
mod shell;
mod sql;
mod tool_call;

use crate::model::{Action, Operation, Resource, RiskLevel};

use super::catalogue::Catalogue;
use super::language;
use super::lexicon::{Form, Lexicon};
use super::reading::{Act, Format, Reading};
use super::sign::Sign;
pub(crate) use tool_call::{Known, Role, Through, tools};

/// Reads a normalized input.
pub(crate) fn read(text: &str, lexicon: &Lexicon, catalogue: &Catalogue) -> Reading {
    let trimmed = unquoted(text.trim());
    if let Some(mut reading) = tool_call::read(trimmed, lexicon, catalogue) {
        // "{"prompt": ...}" is no call: what it hands over is the request.
        let looks = |act: &Act| act.operation == Operation::Read;
        if reading.acts.iter().all(|act| act.resource == Resource::Unknown && !looks(act)) {
            for request in prose::requests(trimmed) {
                absorb_request(&request, &mut reading, lexicon);
            }
        }
        return reading;
    }
    match prose::step(trimmed) {
        Some(prose::Step::Command(line)) => return shell::read(line, lexicon),
        Some(prose::Step::Call(call)) => {
            if let Some(reading) = tool_call::read(&call, lexicon, catalogue) {
                return reading;
            }
        }
        None => {}
    }
    if let Some((before, call, behind)) = prose::call_in_prose(trimmed)
        && let Some(mut reading) = tool_call::read(call, lexicon, catalogue)
    {
        for prose in [before, behind] {
            let mut said = english(prose, lexicon);
            // "I will now call" calls nobody.
            said.acts.retain(|act| !act.is_unknown() && act.operation != Operation::Read && act.verb != "call");
            reading.absorb(said);
        }
        return reading;
    }
    if let Some(reading) = http::read(trimmed, lexicon).or_else(|| sql::read(trimmed)) {
        return reading;
    }
    let line = embedded::behind_prompt(trimmed);
    if line.len() < trimmed.len() {
        return shell::read(line, lexicon);
    }
    if shell::is_command(trimmed, lexicon) {
        return command(trimmed, lexicon);
    }
    if is_code(trimmed) {
        let mut reading = Reading::new(Format::Code);
        reading.push(code());
        return reading;
    }
    if dangers::calls_code(trimmed) {
        let mut reading = english(trimmed, lexicon);
        reading.format = Format::Code;
        reading.acts.retain(|act| !act.is_unknown());
        reading.push(code());
        return reading;
    }
    if let Some(reading) = tool_call::read_expression(trimmed, lexicon, catalogue) {
        return reading;
    }
    let mut reading = english(trimmed, lexicon);
    if reading.acts.iter().all(Act::is_unknown)
        && let Some(spaced) = prose::respaced(trimmed)
    {
        absorb_request(&spaced, &mut reading, lexicon);
    }
    reading
}

/// Takes in what a wrapper hands over; what was not understood before gives way to it.
fn absorb_request(request: &str, reading: &mut Reading, lexicon: &Lexicon) {
    let read = if shell::is_command(request, lexicon) {
        command(request, lexicon)
    } else {
        sql::read(request).unwrap_or_else(|| english(request, lexicon))
    };
    if read.acts.iter().any(|act| !act.is_unknown()) {
        reading.acts.retain(|act| act.resource != Resource::Unknown);
    }
    reading.absorb(read);
}

/// A command line; where "and" or "then" joins what may be another command or an order, that counts as well.
fn command(line: &str, lexicon: &Lexicon) -> Reading {
    let parts = embedded::joined_parts(line, lexicon);
    let mut reading = shell::read(line, lexicon);
    // "run terraform destroy" is no program of that name.
    if let Some(run) = line.strip_prefix("run ").filter(|rest| shell::is_command(rest, lexicon)) {
        reading.absorb(shell::read(run, lexicon));
    }
    for (place, part) in parts.into_iter().enumerate() {
        if place == 0 {
            // What stands behind "and" is none of the first one's arguments.
            reading = shell::read(part, lexicon);
        } else if shell::is_command(part, lexicon) {
            reading.absorb(shell::read(part, lexicon));
        } else {
            reading.absorb(english(part, lexicon));
        }
    }
    reading
}

/// A request that stands whole between quotation marks is no quotation.
fn unquoted(text: &str) -> &str {
    let inner = ['"', '\'']
        .iter()
        .find_map(|&mark| text.strip_prefix(mark)?.strip_suffix(mark).filter(|inner| !inner.contains(mark)));
    inner.map(str::trim).filter(|inner| inner.contains(' ')).unwrap_or(text)
}

/// The acts of a tool by its name; none when it says nothing.
pub(crate) fn tool_acts(name: &str, lexicon: &Lexicon) -> Vec<Act> {
    name::of_tool(name, lexicon)
}

/// The act of an enumerated value that is a verb, on what another act names.
pub(crate) fn verb_act(verb: &str, on: &Act, lexicon: &Lexicon) -> Option<Act> {
    let words = name::words(verb);
    let entry = lexicon.word(words.first()?)?;
    let is_verb = entry.verb.is_some_and(|(_, form)| form == Form::Base) && entry.noun.is_none();
    is_verb.then(|| name::verb_act(&words, on, lexicon)).flatten()
}

/// Whether a word is the path of a secret.
pub(crate) fn is_secret_path(word: &str) -> bool {
    place::is_secret(word)
}

/// The least risk that an action's name implies.
pub(crate) fn name_floor(action: &Action, lexicon: &Lexicon) -> RiskLevel {
    name::floor(action, lexicon)
}

/// Code that is handed over to be run: arbitrary code.
fn code() -> Act {
    let mut act = Act::unclear_execution("code").marked(Sign::Downloaded);
    act.resource = Resource::Code;
    act
}

fn english(text: &str, lexicon: &Lexicon) -> Reading {
    let lower = text.to_ascii_lowercase();
    let understood = language::read(text, &lower, lexicon);
    let mut reading = understood.reading;
    for command in understood.commands {
        reading.absorb(shell::read(command, lexicon));
    }
    for order in understood.orders {
        let lower = order.to_ascii_lowercase();
        let mut ordered = language::read(order, &lower, lexicon).reading;
        ordered.acts.retain(|act| !act.is_unknown() && act.operation != Operation::Read);
        reading.absorb(ordered);
    }
    for command in embedded::commands(text, lexicon) {
        absorb_command(command, &mut reading, lexicon);
    }
    let names_secret = text.split_whitespace().any(|word| {
        // A full stop behind a word makes no path of it.
        let inner = word.trim_end_matches(|c: char| !c.is_alphanumeric());
        inner.contains(['.', '/'])
            && place::is_secret(
                inner.trim_start_matches(|c: char| !c.is_alphanumeric() && !matches!(c, '.' | '/' | '~')),
            )
    });
    if names_secret {
        // Whatever the sentence calls it, the file holds a secret.
        let secret = Act::new("read", "secret_file", Resource::Credential, Operation::Read, 0.8);
        reading.push(secret.at_risk(RiskLevel::High));
    }
    // "Explain what DROP TABLE does" runs nothing.
    let only_asks = !reading.acts.is_empty()
        && reading.acts.iter().all(|act| act.operation == Operation::Read && act.resource == Resource::Information);
    let hands_over = reading.acts.iter().all(|act| act.operation == Operation::Read)
        && text
            .find(':')
            .and_then(|colon| text.get(..=colon))
            .is_some_and(|lead| embedded::asks_for_text(lead, lexicon));
    if let Some(statement) = sql::embedded(text).filter(|_| !only_asks && !hands_over) {
        reading.absorb(statement);
    }
    reading
}

/// Takes in a command line of a sentence, whose words are no nouns and verbs of the sentence.
fn absorb_command(command: &str, reading: &mut Reading, lexicon: &Lexicon) {
    let capitalised = command.starts_with(|c: char| c.is_ascii_uppercase());
    let shouts = capitalised && !command.bytes().any(|byte| byte.is_ascii_lowercase());
    let lower = match command.split_once(' ') {
        _ if shouts => command.to_ascii_lowercase(),
        Some((program, rest)) => format!("{} {rest}", program.to_ascii_lowercase()),
        None => command.to_ascii_lowercase(),
    };
    reading.acts.retain(|act| !act.is_unknown());
    reading.absorb(shell::read(&lower, lexicon));
}

/// A snippet of a programming language by its first words.
fn is_code(text: &str) -> bool {
    let first = text.lines().next().unwrap_or("");
    let opens = [
        "```",
        "#!/",
        "import ",
        "from ",
        "def ",
        "const ",
        "let ",
        "var ",
        "function ",
        "#include",
        "package ",
        "async def ",
        "print(",
    ]
    .iter()
    .any(|start| first.starts_with(start));
    opens && (first.starts_with("```") || first.starts_with("#!") || text.contains(['(', '=', ';', '{']))
}

/// Hands a text to every reader, whatever its form, so that a test can try them all.
#[cfg(test)]
pub(crate) fn read_as_everything(text: &str) {
    if let Ok(lexicon) = Lexicon::shared() {
        let _ = (shell::read(text, &lexicon), sql::read_anyway(text), http::read(text, &lexicon));
        let _ = (tool_call::read_expression(text, &lexicon, &Catalogue::default()), english(text, &lexicon));
    }
}
