//! What stands around rules: conditions at load, macros, variables of the configuration, included files;
//! and the directives of modules beside them, which decide whether rules are reached.

use super::{Context, Maker};

impl Maker {
    /// Puts lines into something that is looked at while the configuration loads, which keeps or drops them.
    pub(super) fn wrapped(&mut self, text: &str, context: Context) -> String {
        let (open, close) = match self.rng.u8(0..8) {
            0..3 => {
                let name = self.pick(&[
                    "mod_rewrite.c",
                    "rewrite_module",
                    "!mod_rewrite.c",
                    "mod_none.c",
                    "!mod_php7.c",
                    "Mod_alias.c",
                ]);
                (format!("<IfModule {name}>"), "</IfModule>")
            }
            3 => {
                let version =
                    self.pick(&[">= 2.4", "< 2.4", "2.4", "~ ^2\\.4", ">2.4.0", "!= 2.2"]);
                (format!("<IfVersion {version}>"), "</IfVersion>")
            }
            4 => {
                let name = self.pick(&["Here", "!Here", "!Nowhere", "Nowhere"]);
                (format!("<IfDefine {name}>"), "</IfDefine>")
            }
            5 => {
                let file = self.pick(&["htdocs/index.html", "htdocs/none"]);
                let not = self.pick(&["", "!"]);
                (format!("<IfFile \"{not}@ROOT@/{file}\">"), "</IfFile>")
            }
            6 => {
                let name = self.pick(&["RewriteRule", "!RewriteRule", "NoSuchDirective"]);
                (format!("<IfDirective {name}>"), "</IfDirective>")
            }
            _ if context == Context::Server => return self.included(text),
            _ => (self.pick(&["<Limit GET POST>", "<LimitExcept PUT>"]).to_owned(), ""),
        };
        match close {
            "" => {
                // What is limited to methods is access alone; the rest goes on for all of them.
                let end = if open.starts_with("<LimitExcept") { "LimitExcept" } else { "Limit" };
                format!("{open}\nRequire all granted\n</{end}>\n{text}")
            }
            close => format!("{open}\n{text}{close}\n"),
        }
    }

    /// A macro, a variable or a file, and the line that stands for the text.
    fn included(&mut self, text: &str) -> String {
        // Names are of the process, and all virtual hosts of a test share one.
        let number = self.rng.u32(..);
        match self.rng.u8(0..3) {
            0 if !text.contains(['$', '@', '&']) => {
                format!("<Macro m{number} $x>\n{text}</Macro>\nUse m{number} y\n")
            }
            0 => {
                let (path, other) = (self.path(), self.path());
                let (path, other) = (super::word(&path), super::word(&other));
                format!(
                    "<Macro m{number} $path ${{to}}>\nRedirect $path http://t/${{to}}$path\n</Macro>\n{text}\
                     Use m{number} {path} x\nUse m{number} {other} \"y z\"\nUndefMacro m{number}\n"
                )
            }
            1 => {
                let target = self.pick(&["http://t/defined", "/docs", "a b"]);
                let path = self.path().replace([' ', '%'], "");
                format!(
                    "Define D{number} \"{target}\"\n{text}Redirect \"{path}\" \"http://t/${{D{number}}}\"\n"
                )
            }
            _ => {
                let file = format!("part{number}.conf");
                self.files.insert(file.clone(), text.to_owned());
                let name = self.pick(&["Include", "IncludeOptional"]);
                let file = if self.one_in(3) { format!("part{number}*") } else { file };
                format!("{name} \"@ROOT@/{file}\"\n")
            }
        }
    }

    /// Who may come in, in the words of httpd 2.4 and of 2.2, and what a directory may do.
    pub(super) fn access(&mut self, context: Context) -> String {
        const ANYWHERE: [&str; 43] = [
            "Require all granted",
            "Require all denied",
            "Require ip 127.0.0.1",
            "Require not ip 127.0.0.1\nRequire all granted",
            "Require env V",
            "Require method GET",
            "Require expr %{REQUEST_URI} =~ /a/",
            "Require local",
            "RedirectRelative On",
            "Options FollowSymLinks",
            "Options +Indexes",
            "Options SymLinksIfOwnerMatch",
            "Options -FollowSymLinks",
            "Options None",
            "Order allow,deny\nAllow from all",
            "Order deny,allow\nDeny from all",
            "Order deny,allow\nDeny from env=V",
            "Order allow,deny\nAllow from 127.0.0.1\nSatisfy any",
            "Deny from 10.0.0.0/8 127.0.0",
            "<RequireAny>\nRequire env V\nRequire method GET\n</RequireAny>",
            "<RequireAll>\nRequire all granted\nRequire not env V\n</RequireAll>",
            "<RequireNone>\nRequire method POST\n</RequireNone>\nRequire all granted",
            "<Limit POST>\nRequire all denied\n</Limit>",
            "<LimitExcept GET HEAD>\nOrder deny,allow\nDeny from all\n</LimitExcept>",
            "SetEnv V set",
            "RequestHeader set X-A b",
            "Require valid-user",
            "AuthType Basic\nAuthName x\nAuthUserFile @ROOT@/none\nRequire valid-user",
            "AuthType Basic\nAuthName x\nAuthUserFile @ROOT@/none\nRequire valid-user\nRequire ip 127.0.0.1",
            "AuthType Basic\nAuthName x\nRequire user a\nSatisfy any\nOrder allow,deny\nAllow from all",
            "AuthMerging And\nRequire all granted",
            "AuthMerging Or\nRequire env V",
            "Require forward-dns localhost",
            "Require host test",
            "Order mutual-failure\nAllow from all",
            "Order allow,deny\nAllow from env=!V\nSatisfy all",
            "Options +MultiViews",
            "Options All",
            "Options Indexes\nOptions -Indexes",
            "UseCanonicalName On",
            "UseCanonicalName Off",
            "AliasPreservePath On",
            "QualifyRedirectURL On",
        ];
        const OVERRIDES: [&str; 7] = [
            "AllowOverride None",
            "AllowOverride FileInfo",
            "AllowOverride AuthConfig Limit",
            "AllowOverride All",
            "AllowOverride Nonfatal=All",
            "AllowOverride None\nAllowOverrideList RewriteEngine RewriteRule Redirect",
            "AllowOverride Options=Indexes FileInfo",
        ];
        let lines = if context == Context::Section && self.one_in(8) {
            self.pick(&OVERRIDES)
        } else {
            self.pick(&ANYWHERE)
        };
        format!("{lines}\n")
    }
}
