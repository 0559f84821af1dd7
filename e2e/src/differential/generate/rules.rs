//! `x-kubernetes-validations`: CEL rules about the fields of the schema that has them.
//! Some rules do not even compile.

use serde_json::{Map, Value};

use super::Generator;

impl Generator<'_> {
    /// Rules for a schema.
    pub(super) fn rules(&mut self, schema: &Map<String, Value>) -> Value {
        let count = 1 + self.random.weighted(&[7, 2, 1]);
        (0..count).map(|_| self.rule(schema)).collect::<Vec<_>>().into()
    }

    pub(super) fn rule(&mut self, schema: &Map<String, Value>) -> Value {
        let mut rule = Map::new();
        let expression = match self.random.weighted(&[12, 3, 1, 5, 10]) {
            0 => self.expression(schema),
            4 => {
                let about_change = self.random.chance(12);
                self.grown(schema, about_change)
            }
            3 => self.library_call(schema.get("type").is_some_and(|kind| kind == "string")),
            1 => self.random.pick(ANY).to_owned(),
            _ => self.random.pick(BROKEN).to_owned(),
        };
        if expression.contains("oldSelf")
            && (expression.contains("oldSelf.hasValue") || expression.contains("oldSelf.or"))
            || self.random.chance(3)
        {
            rule.insert("optionalOldSelf".to_owned(), Value::Bool(self.random.chance(90)));
        }
        rule.insert("rule".to_owned(), expression.into());
        if self.random.chance(20) {
            let message = self.random.pick(&["must be so", "", "é\nb", " ", " so ", "a\rb", "so\n"]);
            rule.insert("message".to_owned(), message.into());
        }
        if self.random.chance(15) {
            let message = if self.random.chance(40) {
                self.grown_message(schema)
            } else {
                self.random.pick(MESSAGES).to_owned()
            };
            rule.insert("messageExpression".to_owned(), message.into());
        }
        if self.random.chance(15) {
            let reason = self.random.pick(&[
                "FieldValueInvalid",
                "FieldValueForbidden",
                "FieldValueRequired",
                "FieldValueDuplicate",
                "Bogus",
                "",
            ]);
            rule.insert("reason".to_owned(), reason.into());
        }
        if self.random.chance(12) {
            let names = self.properties(schema);
            let path = match self.random.below(4) {
                0 if !names.is_empty() => format!("['{}']", names[self.random.below(names.len())]),
                1 => self.random.pick(FIELD_PATHS).to_owned(),
                _ if !names.is_empty() => format!(".{}", names[self.random.below(names.len())]),
                _ => ".a".to_owned(),
            };
            rule.insert("fieldPath".to_owned(), path.into());
        }
        Value::Object(rule)
    }

    fn expression(&mut self, schema: &Map<String, Value>) -> String {
        let names = self.properties(schema);
        let pool = match schema.get("type").and_then(Value::as_str) {
            Some("string") => STRING,
            Some("integer") => INTEGER,
            Some("number") => NUMBER,
            Some("boolean") => BOOLEAN,
            Some("array") => LIST,
            Some("object") if schema.contains_key("additionalProperties") => MAP,
            Some("object")
                if schema.get("x-kubernetes-embedded-resource").is_some() && self.random.chance(40) =>
            {
                EMBEDDED
            }
            Some("object") => OBJECT,
            _ => ANY,
        };
        let name = |generator: &mut Self| match names.len() {
            0 => "a".to_owned(),
            count => escape(&names[generator.random.below(count)]),
        };
        let (one, other) = (name(self), name(self));
        self.random.pick(pool).replace("ONE", &one).replace("OTHER", &other)
    }

    fn properties(&mut self, schema: &Map<String, Value>) -> Vec<String> {
        schema.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::keys).cloned().collect()
    }
}

/// A property name as CEL spells it; one that it cannot spell stays as it is, and the rule will not compile.
pub(super) fn escape(name: &str) -> String {
    if RESERVED.contains(&name) {
        return format!("__{name}__");
    }
    name.replace("__", "__underscores__")
        .replace('.', "__dot__")
        .replace('-', "__dash__")
        .replace('/', "__slash__")
}

/// Words of the language that a schema may use as names.
const RESERVED: &[&str] = &["in", "true", "false", "null", "for", "if", "namespace", "as", "break", "const"];

const FIELD_PATHS: &[&str] = &[
    ".nope",
    "a",
    ".",
    "",
    " ",
    ".a\n",
    ".a.b",
    ".a[0]",
    "['a']",
    ".metadata.name",
    "['a'",
    "[\"a\"]",
    "[a]",
    ".a.",
    "..a",
    ".a['b'].c",
    "['\\n']",
    "['\\q']",
    ".a]",
    "[]",
    ".spec['a.b/c']",
    " .a",
];

const ANY: &[&str] = &[
    "true",
    "false",
    "self == oldSelf",
    "oldSelf == self",
    "self != oldSelf",
    "!oldSelf.hasValue() || self == oldSelf.value()",
    "oldSelf.orValue(self) == self",
    "oldSelf.hasValue()",
    "self == self",
    "type(self) == type(self)",
    "dyn(self) == dyn(self)",
    "dyn(self) == 1",
    "dyn(self) != 'a'",
    "[self].size() == 1",
    "{'a': self}.size() == 1",
    "cel.bind(x, self, x == self)",
    "1 < 2 || self == self",
    "[1, 2].all(x, x < 3)",
    "optional.of(self).hasValue()",
    "optional.none().hasValue()",
];

const BROKEN: &[&str] = &[
    "",
    "self ==",
    "self.nope",
    "nope(self)",
    "1",
    "'a' == 1",
    "self.all(x)",
    "x == self",
    "self(",
    "has(self)",
    "true &&",
    "\"",
    "self in self",
    "self.metadata.labels.size() > 0",
    "authorizer.path('/').check('get').allowed()",
    "self.ONE",
    "1 == 1.0",
    "size(self) == 'a'",
    "variables.a",
    "self.nope == 'a'",
    "[1, 'a'].size() == 2",
    "now() == now()",
    "oldSelf.value() == self",
];

const MESSAGES: &[&str] = &[
    "'bad value'",
    "'bad ' + string(self)",
    "''",
    "'a\\nb'",
    "1",
    "self.nope",
    "'x' +",
    "self",
    "'size ' + string(size(self))",
    "string(1 / 0)",
    "'  '",
    "'%s is bad'.format([self])",
    "self ? 'a' : 'b'",
];

const STRING: &[&str] = &[
    "self.size() < 4",
    "size(self) > 1",
    "self.startsWith('a')",
    "self.endsWith('c')",
    "self.matches('^[a-z]*$')",
    "self.matches('(?i)FOO')",
    "self.matches('[')",
    "self.contains('o')",
    "self in ['a', 'b', '']",
    "self.lowerAscii() == self",
    "self.upperAscii() == self",
    "self.split('.').size() < 3",
    "self.split('', 2)[0] == 'a'",
    "self.find('[0-9]+') != ''",
    "self.findAll('[a-z]').size() > 1",
    "self.findAll('o', 1).size() == 1",
    "isURL(self)",
    "url(self).getScheme() == 'http'",
    "isURL(self) && url(self).getHost() != ''",
    "url(self).getEscapedPath() == '/c'",
    "isIP(self)",
    "isIP(self) && ip(self).family() == 4",
    "ip(self).isLoopback()",
    "ip.isCanonical(self)",
    "isCIDR(self)",
    "cidr(self).prefixLength() == 8",
    "isCIDR(self) && cidr(self).containsIP('10.0.0.1')",
    "isQuantity(self)",
    "quantity(self).isGreaterThan(quantity('1'))",
    "quantity(self).isInteger()",
    "isQuantity(self) && quantity(self).sign() == 1",
    "quantity(self).add(quantity('1')).asApproximateFloat() > 1.0",
    "quantity(self).compareTo(quantity('10m')) == 0",
    "!format.dns1123Label().validate(self).hasValue()",
    "!format.dns1123Subdomain().validate(self).hasValue()",
    "!format.named('uuid').value().validate(self).hasValue()",
    "!format.qualifiedName().validate(self).hasValue()",
    "!format.labelValue().validate(self).hasValue()",
    "!format.uri().validate(self).hasValue()",
    "!format.date().validate(self).hasValue()",
    "format.dns1035Label().validate(self).value().size() > 0",
    "isSemver(self)",
    "isSemver(self) && semver(self).major() > 0",
    "duration(self) > duration('1s')",
    "duration(self).getHours() == 1",
    "timestamp(self) < timestamp('2021-01-01T00:00:00Z')",
    "timestamp(self).getFullYear() == 2020",
    "int(self) > 1",
    "double(self) > 1.0",
    "self.charAt(0) == 'a'",
    "self.indexOf('o') > 0",
    "self.lastIndexOf('o') == 2",
    "self.replace('a', 'b') == self",
    "self.replace('o', '', 1) != self",
    "self.substring(1) != ''",
    "self.substring(0, 2) == 'ab'",
    "self.trim() == self",
    "self.reverse() == self",
    "'%s'.format([self]) == self",
    "'%d-%s'.format([1, self]) == '1-a'",
    "bytes(self) == b'a'",
    "size(bytes(self)) == size(self)",
    "self + 'x' == 'ax'",
    "self < 'b'",
    "string(1) == self",
    "self == 'a' ? true : self == 'b'",
    "['a', self].join('-') == 'a-a'",
    "bool(self)",
    "self.size() > 0 && self[0] == 'a'",
    "oldSelf == '' || self == oldSelf",
    "self >= oldSelf",
];

const INTEGER: &[&str] = &[
    "self > 1",
    "self % 2 == 0",
    "self <= 10 && self >= 0",
    "self + 1 > self",
    "self * self >= 0",
    "10 / self > 1",
    "10 % self == 0",
    "double(self) > 0.5",
    "self in [1, 2, 3]",
    "string(self).size() < 3",
    "-self < 0",
    "uint(self) > 1u",
    "self < 1.5",
    "self == 1",
    "self != 3",
    "self >= oldSelf",
    "self - 1 < self",
    "timestamp(self) > timestamp('2020-01-01T00:00:00Z')",
    "self == 9223372036854775807",
    "self > 2147483647",
    "'%d'.format([self]) == '1'",
    "'%x'.format([self]) == 'a'",
    "self > 1 || 1 / 0 > 0",
    "1 / 0 > 0 || self > 1",
    "[self].sum() > 1",
    "self < 2u",
];

const NUMBER: &[&str] = &[
    "self > 1.5",
    "self == 1.0",
    "int(self) == 1",
    "self / 0.0 > 1.0",
    "self * 2.0 < 5.0",
    "self >= 0",
    "string(self) == '1.5'",
    "self in [1.0, 1.5]",
    "-self < 0.0",
    "double(int(self)) == self",
    "'%f'.format([self]) == '1.500000'",
    "'%.1f'.format([self]) == '1.5'",
    "self != self",
    "uint(self) == 1u",
    "self < 3",
];

const BOOLEAN: &[&str] = &[
    "self",
    "!self",
    "self || true",
    "self ? true : false",
    "self == true",
    "self && !oldSelf",
    "string(self) == 'true'",
    "self in [true]",
    "self != false",
    "self > false",
];

const LIST: &[&str] = &[
    "self.size() > 1",
    "size(self) < 3",
    "self.all(x, x == self[0])",
    "self.exists_one(x, x == x)",
    "self.exists(x, x != x)",
    "self.map(x, x).size() > 0",
    "self.filter(x, true) == self",
    "self[0] == self[0]",
    "self.isSorted()",
    "self.sum() > 1",
    "self.max() < 3",
    "self.min() > 0",
    "self.indexOf(1) == 0",
    "self.lastIndexOf('a') == 0",
    "oldSelf.all(x, x in self)",
    "self.all(i, x, i < 2)",
    "self.exists(i, x, i == 1)",
    "self.transformList(i, x, i).size() == self.size()",
    "sets.contains(self, self)",
    "sets.equivalent(self, self)",
    "sets.intersects(self, [])",
    "self.slice(0, 1).size() == 1",
    "self.flatten().size() == 0",
    "self.distinct().size() == self.size()",
    "self.sort() == self",
    "self + self == self",
    "self.exists(x, has(x.name))",
    "self.all(x, has(x.name) && has(x.key))",
    "self.all(x, self.filter(y, x == y).size() == 1)",
    "self.all(x, x > 1)",
    "self.all(x, x.startsWith('a'))",
    "self.all(x, x.a > 1)",
    "self.map(x, x > 1, x).size() < 2",
    "self == []",
    "1 in self",
    "self.all(x, x in oldSelf)",
    "self == oldSelf",
    "self[1] != self[0]",
    "self[-1] == self[0]",
    "self.reverse() == self",
    "self.exists_one(x, x.name == 'a')",
    "self.join(',') == 'a'",
];

const MAP: &[&str] = &[
    "self.all(k, k != '')",
    "self.all(k, self[k] == self[k])",
    "size(self) < 3",
    "self.size() > 0",
    "'a' in self",
    "self.exists(k, k.startsWith('a'))",
    "self.map(k, k).size() < 2",
    "self['k1'] == self['k2']",
    "self.transformMap(k, v, v) == self",
    "self.all(k, v, k != '' && v == v)",
    "has(self.k1)",
    "!has(self.k1) || self.k1 == self.k1",
    "self == {}",
    "self.?k1.hasValue()",
    "self[?'k1'].orValue(1) == 1",
    "self.exists_one(k, k == 'k1')",
    "self.filter(k, self[k] == 1).size() == 0",
    "oldSelf.all(k, k in self)",
    "self.all(k, self[k] > 1)",
    "self.all(k, self[k] != '')",
    "self.all(k, self[k].size() > 0)",
    "self == oldSelf",
    "self.k1 > 1",
    "self['a.b/c'] != 'x'",
];

const OBJECT: &[&str] = &[
    "has(self.ONE)",
    "!has(self.ONE)",
    "!has(self.ONE) || has(self.OTHER)",
    "has(self.ONE) && has(self.OTHER)",
    "self.ONE == self.OTHER",
    "has(self.ONE) ? self.ONE == self.ONE : true",
    "self.ONE > 1",
    "self.ONE.size() > 0",
    "size(self.ONE) < 3",
    "self.?ONE.hasValue()",
    "self.?ONE.orValue(1) == 1",
    "self == self",
    "'ONE' in self",
    "size(self) < 4",
    "!has(self.ONE) || self.ONE != self.ONE",
    "self.ONE == 'a'",
    "self.ONE < self.OTHER",
    "self.ONE == oldSelf.ONE",
    "!has(oldSelf.ONE) || has(self.ONE)",
    "self.ONE.ONE == 1",
    "self.ONE.all(x, x == x)",
    "has(self.ONE) == has(self.OTHER)",
    "(has(self.ONE) ? 1 : 0) + (has(self.OTHER) ? 1 : 0) == 1",
    "self.ONE",
    "!self.ONE",
    "self.ONE.startsWith('a') || self.ONE == ''",
    "self['ONE'] == 1",
    "self.ONE == null",
    "self.all(k, true)",
    "has(self.ONE) && self.ONE >= 0",
    "self.ONE.a == 1 || self.OTHER == 'a'",
    "type(self.ONE) == string",
    "string(self.ONE) == '1'",
    "self.ONE.isSorted()",
    "dyn(self.ONE) == dyn(self.OTHER)",
    "self.metadata.name == 'x'",
    "self.metadata.name.size() < 5",
    "has(self.metadata)",
    "self.kind == 'Thing'",
    "self.apiVersion.startsWith('stable')",
    "self.ONE in ['a', 'b']",
    "self.ONE == {}",
    "self.ONE == []",
    "has(self.ONE.OTHER)",
    "self.?ONE.?OTHER.hasValue()",
    "self.?ONE[?0].hasValue()",
    "self.?ONE.optMap(x, x == x).orValue(false)",
];

const EMBEDDED: &[&str] = &[
    "self.metadata.name == 'n'",
    "has(self.metadata)",
    "has(self.metadata.name)",
    "self.kind == 'Pod'",
    "self.apiVersion == 'v1'",
    "self.metadata.generateName != ''",
    "has(self.metadata.labels)",
    "self.metadata.name.startsWith('n') || true",
    "size(self.kind) > 0",
    "!has(self.metadata.name) || self.metadata.name.size() < 3",
];
