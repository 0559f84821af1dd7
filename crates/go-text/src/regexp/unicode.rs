//! Named classes and case folding as Go has them: its names, and Unicode 15.0.
//!
//! The tables are those of `regex-syntax`, cut back to what Unicode 15.0 had assigned. Two differences are
//! left: U+1171E, which has changed from `Mc` to `Mn`, and U+0345, which Go does not add to `(?i)\p{LC}`.

use std::sync::LazyLock;

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, HirKind};

/// What had been assigned by the Unicode version of Go 1.21 to 1.26.
static ASSIGNED: LazyLock<ClassUnicode> = LazyLock::new(|| {
    let mut assigned = property("age=15.0");
    // Noncharacters have an age, and are nevertheless unassigned.
    assigned.difference(&property("gc=Cn"));
    assigned
});

/// Go's scripts, as far as a pattern can name them: the lookup drops underscores, so two-word names are never
/// found.
const SCRIPTS: &str = "\
    Adlam Ahom Arabic Armenian Avestan Balinese Bamum Batak Bengali Bhaiksuki Bopomofo Brahmi Braille \
    Buginese Buhid Carian Chakma Cham Cherokee Chorasmian Common Coptic Cuneiform Cypriot Cyrillic \
    Deseret Devanagari Dogra Duployan Elbasan Elymaic Ethiopic Georgian Glagolitic Gothic Grantha Greek \
    Gujarati Gurmukhi Han Hangul Hanunoo Hatran Hebrew Hiragana Inherited Javanese Kaithi Kannada \
    Katakana Kawi Kharoshthi Khmer Khojki Khudawadi Lao Latin Lepcha Limbu Lisu Lycian Lydian Mahajani \
    Makasar Malayalam Mandaic Manichaean Marchen Medefaidrin Miao Modi Mongolian Mro Multani Myanmar \
    Nabataean Nandinagari Newa Nko Nushu Ogham Oriya Osage Osmanya Palmyrene Phoenician Rejang Runic \
    Samaritan Saurashtra Sharada Shavian Siddham Sinhala Sogdian Soyombo Sundanese Syriac Tagalog \
    Tagbanwa Takri Tamil Tangsa Tangut Telugu Thaana Thai Tibetan Tifinagh Tirhuta Toto Ugaritic Vai \
    Vithkuqi Wancho Yezidi Yi";

/// Go's general categories with their long names, both as the lookup sees them.
const CATEGORIES: &[(&str, &str)] = &[
    ("C", "Other"),
    ("Cc", "Control"),
    ("Cf", "Format"),
    ("Cn", "Unassigned"),
    ("Co", "Privateuse"),
    ("Cs", "Surrogate"),
    ("L", "Letter"),
    ("Lc", "Casedletter"),
    ("Ll", "Lowercaseletter"),
    ("Lm", "Modifierletter"),
    ("Lo", "Otherletter"),
    ("Lt", "Titlecaseletter"),
    ("Lu", "Uppercaseletter"),
    ("M", "Mark"),
    ("M", "Combiningmark"),
    ("Mc", "Spacingmark"),
    ("Me", "Enclosingmark"),
    ("Mn", "Nonspacingmark"),
    ("N", "Number"),
    ("Nd", "Decimalnumber"),
    ("Nl", "Letternumber"),
    ("No", "Othernumber"),
    ("P", "Punctuation"),
    ("Pc", "Connectorpunctuation"),
    ("Pd", "Dashpunctuation"),
    ("Pe", "Closepunctuation"),
    ("Pf", "Finalpunctuation"),
    ("Pi", "Initialpunctuation"),
    ("Po", "Otherpunctuation"),
    ("Ps", "Openpunctuation"),
    ("S", "Symbol"),
    ("Sc", "Currencysymbol"),
    ("Sk", "Modifiersymbol"),
    ("Sm", "Mathsymbol"),
    ("So", "Othersymbol"),
    ("Z", "Separator"),
    ("Zl", "Lineseparator"),
    ("Zp", "Paragraphseparator"),
    ("Zs", "Spaceseparator"),
    ("Cc", "Cntrl"),
    ("Nd", "Digit"),
    ("P", "Punct"),
];

/// The class that `\p{name}` names.
pub(super) fn named(name: &str) -> Option<ClassUnicode> {
    let name = canonical(name);
    match name.as_str() {
        "Any" => return Some(everything()),
        "Assigned" => return Some(ASSIGNED.clone()),
        "Ascii" => return Some(ClassUnicode::new([ClassUnicodeRange::new('\0', '\x7F')])),
        _ => {}
    }
    if let Some((short, _)) = CATEGORIES.iter().find(|(short, long)| *short == name || *long == name) {
        return Some(category(short));
    }
    SCRIPTS.split(' ').any(|script| script == name).then(|| {
        let mut script = property(&format!("sc={name}"));
        script.intersect(&ASSIGNED);
        script
    })
}

/// Adds to a class what equals its characters but for their case.
pub(super) fn fold(class: &mut ClassUnicode) {
    let mut folded = class.clone();
    folded.intersect(&ASSIGNED);
    folded.case_fold_simple();
    folded.intersect(&ASSIGNED);
    class.union(&folded);
}

/// Every character; surrogates are not characters in a JSON text.
pub(super) fn everything() -> ClassUnicode {
    ClassUnicode::new([ClassUnicodeRange::new('\0', char::MAX)])
}

fn category(short: &str) -> ClassUnicode {
    let mut class = match short {
        "Cs" => return ClassUnicode::empty(),
        "Cn" => {
            let mut unassigned = ASSIGNED.clone();
            unassigned.negate();
            return unassigned;
        }
        _ => property(&format!("gc={short}")),
    };
    class.intersect(&ASSIGNED);
    if short == "C" {
        class.union(&category("Cn"));
    }
    class
}

/// Go's lookup form: a capital and then small letters, without spaces, hyphens and underscores.
fn canonical(name: &str) -> String {
    let mut letters = name.chars().filter(|letter| !matches!(letter, '_' | '-' | ' '));
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters.map(|letter| letter.to_ascii_lowercase())).collect()
}

fn property(query: &str) -> ClassUnicode {
    let hir = regex_syntax::Parser::new().parse(&format!(r"\p{{{query}}}"));
    match hir.map(regex_syntax::hir::Hir::into_kind) {
        Ok(HirKind::Class(Class::Unicode(class))) => class,
        // A class of one character comes as a literal.
        Ok(HirKind::Literal(literal)) => {
            let text = String::from_utf8_lossy(&literal.0);
            ClassUnicode::new(text.chars().map(|only| ClassUnicodeRange::new(only, only)))
        }
        _ => ClassUnicode::empty(),
    }
}
