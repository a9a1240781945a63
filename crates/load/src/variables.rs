//! Reads the values that templates are filled with: a CSV file, its first line the names.
//!
//! Source: RFC 4180; an empty line is skipped, and a field may be longer than a line only in quotes.

/// Rows at most: they are kept in memory for the whole run.
pub const ROWS_MAX: usize = 10_000_000;

/// Columns with names, and their rows. Request number k takes row k, and after the last the first again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Variables {
    names: Vec<String>,
    rows: Vec<Vec<String>>,
    /// Line of each row, from 1.
    lines: Vec<usize>,
}

/// What is wrong with a CSV file, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{line}: {what}")]
pub struct VariablesError {
    /// Line, from 1.
    pub line: usize,
    /// What is wrong.
    pub what: String,
}

impl Variables {
    /// Reads a CSV file.
    ///
    /// # Errors
    ///
    /// The first mistake, with its line: no name or no row at all, a name twice or one that a template
    /// cannot say, a row with more or fewer fields than names, a quote that does not end.
    pub fn parse(text: &str) -> Result<Self, VariablesError> {
        let fail = |line, what: String| Err(VariablesError { line, what });
        let mut records = Records { text, line: 1 };
        let Some((line, names)) = records.next().transpose()? else {
            return fail(1, "the names of the columns are missing".to_owned());
        };
        for (at, name) in names.iter().enumerate() {
            let is_word = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
            if name.is_empty() || !name.chars().all(is_word) {
                return fail(
                    line,
                    format!("the name {name:?} is not made of letters, digits, - and _"),
                );
            }
            if names[..at].contains(name) {
                return fail(line, format!("the name {name} is there twice"));
            }
        }
        let (mut rows, mut lines) = (Vec::new(), Vec::new());
        for record in records {
            let (line, row) = record?;
            if row.len() != names.len() {
                let what = format!("{} fields, and there are {} names", row.len(), names.len());
                return fail(line, what);
            }
            if rows.len() >= ROWS_MAX {
                return fail(line, format!("more than {ROWS_MAX} rows"));
            }
            rows.push(row);
            lines.push(line);
        }
        if rows.is_empty() {
            return fail(line, "there are names and no values".to_owned());
        }
        Ok(Self { names, rows, lines })
    }

    /// The column called `name`.
    pub(crate) fn column(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|found| found == name)
    }

    /// The names, apart by commas.
    pub(crate) fn names(&self) -> String {
        self.names.join(", ")
    }

    /// The value of a column for request number `number`.
    pub(crate) fn value(&self, column: usize, number: u64) -> &str {
        // Less than the number of rows, so it fits; a column is only known where there are rows.
        &self.rows[(number % self.rows.len() as u64) as usize][column]
    }

    /// The first value of a column that is not as it must be, and its line.
    pub(crate) fn find(
        &self,
        column: usize,
        is_bad: impl Fn(&str) -> bool,
    ) -> Option<(usize, &str)> {
        let values = self.lines.iter().zip(&self.rows).map(|(line, row)| (*line, &*row[column]));
        values.into_iter().find(|(_, value)| is_bad(value))
    }
}

/// Records of a CSV file, each with the line that it begins in.
struct Records<'a> {
    text: &'a str,
    line: usize,
}

impl Iterator for Records<'_> {
    type Item = Result<(usize, Vec<String>), VariablesError>;

    fn next(&mut self) -> Option<Self::Item> {
        while let Some(rest) =
            self.text.strip_prefix('\n').or_else(|| self.text.strip_prefix("\r\n"))
        {
            self.text = rest;
            self.line += 1;
        }
        if self.text.is_empty() {
            return None;
        }
        let (line, mut fields) = (self.line, Vec::new());
        loop {
            match self.field() {
                Ok((field, is_last)) => {
                    fields.push(field);
                    if is_last {
                        return Some(Ok((line, fields)));
                    }
                }
                Err(what) => {
                    self.text = "";
                    return Some(Err(VariablesError { line, what }));
                }
            }
        }
    }
}

impl Records<'_> {
    /// Takes a field and what ends it; true if that is the end of the record.
    fn field(&mut self) -> Result<(String, bool), String> {
        let mut field = String::new();
        if let Some(quoted) = self.text.strip_prefix('"') {
            let mut rest = quoted;
            loop {
                let Some((part, after)) = rest.split_once('"') else {
                    return Err("a quote does not end".to_owned());
                };
                field.push_str(part);
                match after.strip_prefix('"') {
                    Some(after) => {
                        field.push('"');
                        rest = after;
                    }
                    None => {
                        self.text = after;
                        break;
                    }
                }
            }
            self.line += field.matches('\n').count();
        } else {
            let end = self.text.find([',', '\n']).unwrap_or(self.text.len());
            let (plain, rest) = self.text.split_at(end);
            let plain = if rest.starts_with(',') { plain } else { plain.trim_end_matches('\r') };
            if plain.contains('"') {
                return Err("a quote stands inside of a field".to_owned());
            }
            field.push_str(plain);
            self.text = rest;
        }
        let rest = self.text.strip_prefix('\r').unwrap_or(self.text);
        if let Some(rest) = rest.strip_prefix('\n') {
            self.text = rest;
            self.line += 1;
            return Ok((field, true));
        }
        match self.text.strip_prefix(',') {
            Some(rest) => {
                self.text = rest;
                // A comma at the very end has an empty field behind it.
                Ok((field, false))
            }
            None if rest.is_empty() => {
                self.text = "";
                Ok((field, true))
            }
            None => Err("something stands behind a quoted field".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_taken_in_turn() {
        let text = "id,name\r\n1,\"a, \"\"b\"\"\nc\"\r\n\n2,\n";
        let variables = Variables::parse(text).unwrap();
        let (id, name) = (variables.column("id").unwrap(), variables.column("name").unwrap());
        let values: Vec<_> =
            (0..3).map(|at| (variables.value(id, at), variables.value(name, at))).collect();
        assert_eq!(values, [("1", "a, \"b\"\nc"), ("2", ""), ("1", "a, \"b\"\nc")]);
        assert_eq!(variables.find(name, str::is_empty), Some((5, "")));
        assert_eq!(Variables::parse("a\nb").unwrap().value(0, 7), "b");
    }

    #[test]
    fn mistakes_have_their_line() {
        refuse("", "1: the names of the columns are missing");
        refuse("a\n", "1: there are names and no values");
        refuse("a,a\n1,2", "1: the name a is there twice");
        refuse("a b\n1", "1: the name \"a b\" is not made of letters, digits, - and _");
        refuse("a,b\n1,2\n3", "3: 1 fields, and there are 2 names");
        refuse("a\n\n\"x", "3: a quote does not end");
        refuse("a\nx\"y", "2: a quote stands inside of a field");
        refuse("a\n\"x\"y", "2: something stands behind a quoted field");
    }

    #[track_caller]
    fn refuse(text: &str, message: &str) {
        assert_eq!(Variables::parse(text).unwrap_err().to_string(), message);
    }
}
