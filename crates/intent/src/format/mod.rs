//! Detects the format of an input and calls its reader.
//!
//! A structured format is assumed only if its shape is clear; everything else is read as English. `name` reads the
//! names of tools and actions for all readers, `driver` the commands that a text of another format runs.

mod access;
mod driver;
mod embedded;
mod english;
mod graphql;
mod guard;
mod hosts;
mod http;
mod name;
mod patch;
mod place;
mod prose;
mod query;
mod shell;
mod sql;
mod tables;
mod tool;
mod tool_call;
mod tool_name;
mod tools;

use rulekeep_types::facts::{Operand, Role as OperandRole};
use rulekeep_types::{Action, Error, Operation, Resource, RiskLevel};

use super::lexicon::Lexicon;
use super::reading::{Act, Format, Reading};
pub(crate) use hosts::{Known, Through, known as known_tool};
pub(crate) use tool::{Tool, ToolIndex, ToolTurn};
pub use tool_call::calls_of;
pub(crate) use tool_name::acts as tool_acts;
pub use tools::Role;
pub(crate) use tools::tools;

/// Refuses tables of the readers that do not read.
pub(crate) fn check_tables() -> Result<(), Error> {
    tables::check().and_then(|()| sql::check_table())
}

/// Returns whether a tool's name starts with a verb of reading: `get_version`, `FindTrains`.
pub(crate) fn begins_with_look(tool: &str, lexicon: &Lexicon) -> bool {
    let own = tools::own_part(tool).unwrap_or(tool);
    name::words(own)
        .first()
        .and_then(|verb| lexicon.deed(verb))
        .is_some_and(|(operation, _)| operation == Operation::Read)
}

/// The role of a tool's argument, by its key.
pub fn argument_role(key: &str) -> Option<Role> {
    tools().role(key)
}

/// Reads a text of one format, without blanks around it; `None` for a text of another.
type Reader = fn(&str, &Lexicon, &ToolTurn<'_>) -> Option<Reading>;

/// The readers in the order in which they are asked.
const READERS: &[Reader] = &[
    call,
    step,
    call_in_prose,
    |text, lexicon, _| driver::request(text, lexicon),
    |text, lexicon, _| driver::sql(text, lexicon),
    command_line,
    code,
    tool_call::read_expression,
];

/// Reads a normalized input.
pub(crate) fn read(text: &str, lexicon: &Lexicon, known: &ToolTurn<'_>) -> Reading {
    let text = unquoted(text.trim());
    READERS.iter().find_map(|reader| reader(text, lexicon, known)).unwrap_or_else(|| sentence(text, lexicon))
}

/// Reads a call, and the request that a message of JSON holds.
fn call(text: &str, lexicon: &Lexicon, known: &ToolTurn<'_>) -> Option<Reading> {
    let mut reading = tool_call::read(text, lexicon, known)?;
    // "{"prompt": ...}" is not a call: its value is the request.
    let looks = |act: &Act| act.operation == Operation::Read;
    if reading.acts.iter().all(|act| act.resource == Resource::Unknown && !looks(act)) {
        let is_named = reading.steps.iter().any(|step| step.tool.is_some());
        for request in prose::requests(text) {
            // For an unknown tool, no argument determines what it does.
            let unknown = if is_named { reading.acts.clone() } else { Vec::new() };
            absorb_request(&request, &mut reading, lexicon);
            for act in unknown {
                reading.push(act);
            }
        }
    }
    Some(reading)
}

/// Reads a step of a reasoning trace.
fn step(text: &str, lexicon: &Lexicon, known: &ToolTurn<'_>) -> Option<Reading> {
    match prose::step(text)? {
        prose::Step::Command(line) => Some(driver::command(line, lexicon)),
        prose::Step::Call(call) => tool_call::read(&call, lexicon, known),
    }
}

/// Reads a call with sentences around it.
fn call_in_prose(text: &str, lexicon: &Lexicon, known: &ToolTurn<'_>) -> Option<Reading> {
    let (before, call, behind) = prose::call_in_prose(text)?;
    let mut reading = tool_call::read(call, lexicon, known)?;
    for prose in [before, behind] {
        let mut said = english::read(prose, lexicon);
        // "I will now call" calls nobody.
        said.acts.retain(|act| !act.is_unknown() && act.operation != Operation::Read && act.verb != "call");
        reading.absorb(said);
    }
    Some(reading)
}

/// Reads a command line, also behind a prompt.
fn command_line(text: &str, lexicon: &Lexicon, _: &ToolTurn<'_>) -> Option<Reading> {
    let line = embedded::behind_prompt(text);
    if line.len() < text.len() {
        return Some(driver::command(line, lexicon));
    }
    shell::is_command(text, lexicon).then(|| command(text, lexicon))
}

/// Reads program code, which is handed over to be run, with the sentence that it stands in.
fn code(text: &str, lexicon: &Lexicon, _: &ToolTurn<'_>) -> Option<Reading> {
    let mut reading = if is_code(text) {
        Reading::new(Format::Code)
    } else if shell::calls_code(text) {
        let mut said = english::read(text, lexicon);
        said.format = Format::Code;
        said.acts.retain(|act| !act.is_unknown());
        said
    } else {
        return None;
    };
    reading.push(Act::unseen_code());
    Some(reading)
}

/// Reads English, also written as one identifier.
fn sentence(text: &str, lexicon: &Lexicon) -> Reading {
    let mut reading = english::read(text, lexicon);
    if reading.acts.iter().all(Act::is_unknown)
        && let Some(spaced) = prose::respaced(text)
    {
        absorb_request(&spaced, &mut reading, lexicon);
    }
    reading
}

/// Merges the reading of a wrapped request, which replaces what was not understood before.
fn absorb_request(request: &str, reading: &mut Reading, lexicon: &Lexicon) {
    let read = if shell::is_command(request, lexicon) {
        command(request, lexicon)
    } else {
        driver::sql(request, lexicon).unwrap_or_else(|| english::read(request, lexicon))
    };
    if read.acts.iter().any(|act| !act.is_unknown()) {
        reading.acts.retain(|act| act.resource != Resource::Unknown);
    }
    reading.absorb(read);
}

/// Reads a command line. If "and" or "then" joins another possible command or order, that counts as well.
fn command(line: &str, lexicon: &Lexicon) -> Reading {
    let parts = embedded::joined_parts(line, lexicon);
    let mut reading = driver::command(line, lexicon);
    // "run terraform destroy" is not a program named `run`.
    if let Some(run) = line.strip_prefix("run ").filter(|rest| shell::is_command(rest, lexicon)) {
        reading.absorb(driver::command(run, lexicon));
    }
    for (place, part) in parts.into_iter().enumerate() {
        if place == 0 {
            // The words after "and" are not arguments of the first command.
            reading = driver::command(part, lexicon);
        } else if shell::is_command(part, lexicon) {
            reading.absorb(driver::command(part, lexicon));
        } else {
            reading.absorb(english::read(part, lexicon));
        }
    }
    reading
}

/// Removes quotation marks around a whole request, which then is not a quotation.
fn unquoted(text: &str) -> &str {
    let inner = ['"', '\'']
        .iter()
        .find_map(|&mark| text.strip_prefix(mark)?.strip_suffix(mark).filter(|inner| !inner.contains(mark)));
    inner.map(str::trim).filter(|inner| inner.contains(' ')).unwrap_or(text)
}

/// The act of an enumerated value that is a verb, applied to the object of another act.
pub(crate) fn verb_act(verb: &str, on: &Act, lexicon: &Lexicon) -> Option<Act> {
    let words = name::words(verb);
    let first = words.first()?;
    (lexicon.is_verb(first) && !lexicon.is_noun(first)).then(|| name::verb_act(&words, on, lexicon)).flatten()
}

/// The effects of acting on a path beyond the operation itself, judged by the whole path.
pub(crate) fn effects_of(operand: &Operand) -> Vec<Act> {
    match operand.role {
        OperandRole::Write => access::written(&operand.value),
        OperandRole::Remove => access::changed(&operand.value),
        OperandRole::Read => access::read(&operand.value).into_iter().collect(),
        OperandRole::Named | OperandRole::SendTo | OperandRole::Run | OperandRole::Pay => Vec::new(),
    }
}

/// Returns whether a word is the path of a secret.
pub(crate) fn is_secret_path(word: &str) -> bool {
    place::is_secret(word)
}

/// The risk floor that an action's name implies.
pub(crate) fn name_floor(action: &Action, lexicon: &Lexicon) -> RiskLevel {
    name::floor(action, lexicon)
}

/// Returns whether the first words show a piece of program code.
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

/// Passes a text to every reader whatever its format, so that a test can try them all.
#[cfg(test)]
pub(crate) fn read_as_everything(text: &str) {
    if let Ok(lexicon) = Lexicon::shared() {
        let _ = (driver::command(text, &lexicon), driver::statement(text, &lexicon), driver::request(text, &lexicon));
        let _ =
            (tool_call::read_expression(text, &lexicon, &ToolIndex::default().turn(0)), english::read(text, &lexicon));
    }
}
