# SPDX-License-Identifier: MIT
"""errand.conf(5) says of each key what the table in src/host/config_keys.c says."""
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "lib"))
sys.dont_write_bytecode = True
from mcpclient import run_tests  # noqa: E402

UNITS = {"KEY_COUNT": "A number", "KEY_BYTES": "Bytes", "KEY_MS": "Milliseconds",
         "KEY_S": "Seconds"}
KINDS = {"KEY_NAMES": "Names", "KEY_FOLDER": "A folder", "KEY_COMMAND": "A command"}


def text_of(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as f:
        return f.read()


def value(text):
    names = {"INT32_MAX": 2 ** 31 - 1, "DAY_MS": 86400000, "MIB_64": 1 << 20,
             "TIB_64": 1 << 40}
    return eval(text, names)


def keys_of_the_code():
    """[(section, name, help, facts)], in the table's order."""
    code = text_of("src", "host", "config_keys.c")
    credentials = re.search(r"#define CREDENTIALS(.*?)\n\n", code, re.S).group(1)
    texts = {'""': "none", "CREDENTIALS": "".join(re.findall(r'"(.*?)"', credentials))}
    table = re.search(r"config_keys\[\] = \{(.*?)\n\};", code, re.S).group(1)
    rows = re.findall(r'\{"(\w+)",\s*"(\w+)",\s*(KEY_\w+),\s*([^,]+),\s*([^,]+),\s*([^,]+),'
                      r'\s*([^,]+),\s*AT\(\w+\),\s*((?:"[^"]*"\s*)+)\}', table)
    assert len(rows) == table.count("AT("), "a row is written in another way"
    keys = []
    for section, name, kind, standard, least, most, text, say in rows:
        if kind in UNITS:
            facts = "%s, %d to %d. Default: %d." % (UNITS[kind], value(least), value(most),
                                                    value(standard))
        else:
            facts = "%s. Default: %s." % (KINDS[kind], texts[text].replace(",", ", "))
        keys.append((section, name, "".join(re.findall(r'"([^"]*)"', say)), facts))
    return keys


def keys_of_the_page():
    """(section, name) -> what is said, on one line."""
    said, section = {}, None
    for part in re.split(r"\n\n(?=## |# |\*\w+\*\n\t)", text_of("man", "errand.conf.5.scd")):
        head = re.match(r"## \[(\w+)\]", part)
        key = re.match(r"\*(\w+)\*\n\t", part)
        if head:
            section = head.group(1)
        elif part.startswith("# "):
            section = None
        elif key and section:
            text = " ".join(part[key.end():].split()).replace("\\_", "_")
            said[section, key.group(1)] = text.replace("*", "")
    return said


def test_the_page_has_each_key_and_no_other():
    code, page = [key[:2] for key in keys_of_the_code()], list(keys_of_the_page())
    assert len(code) >= 15, code
    assert page == code, (page, code)


def test_the_page_says_what_each_key_is_and_its_unit_range_and_default():
    page = keys_of_the_page()
    for section, name, say, facts in keys_of_the_code():
        text = page[section, name]
        assert text.startswith(say), (name, text, say)
        assert text.endswith(facts), (name, text, facts)


if __name__ == "__main__":
    run_tests(globals())
