#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/user/compatibility.md anew: every public function of the installed libibverbs and librdmacm, exported or
inline in their headers, and what our devices make of it. Usage: scripts/update_compatibility_doc [--check]

Read from the code: gateway/client/exports.txt (functions that are ours), passed_through.txt (those that stay the
installed library's), drop_in/later_names.txt (those of later releases), device/refusals.h (what is refused), and the places of
the operation tables that the client fills. --check writes nothing and fails when a function of the installed rdma-core
has no row, or another one."""

import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CLIENT = os.path.join(ROOT, "gateway/client")
DOCUMENT = os.path.join(ROOT, "docs/user/compatibility.md")
INCLUDE = os.environ.get("RDMA_INCLUDE", "/usr/include")
LIBRARIES = (("libibverbs", ("infiniband/verbs.h", "infiniband/verbs_api.h")),
             ("librdmacm", ("rdma/rdma_cma.h", "rdma/rdma_verbs.h", "rdma/rsocket.h")))
WORKS, REFUSED, PASSED, MISSING = "works", "refused", "passed through", "missing"

INLINE = re.compile(r"^static inline\s[^;{}()]*?\b(\w+)\s*\(([^{};]*)\)\s*\{(.*?)^\}", re.M | re.S)
CONTEXT_SLOT = re.compile(r"verbs_get_ctx_op\(\s*[^,]+,\s*(\w+)\s*\)|\bops\.(\w+)|\bvctx->(?!context)(\w+)\(")
OBJECT_SLOT = re.compile(r"\breturn\s+(?:\w+->)?(?:qp|cq|dm|wq|current)->(\w+)\(|^\s*(?:qp|cq|dm|wq)->(\w+)\(", re.M)
CALL = re.compile(r"\b(_?(?:ibv|rdma)_\w+)\s*\(")

HEADER = """# Which functions work

Look here whether a function that your program calls works on a gateway's device. The page lists every public function
of libibverbs and librdmacm. `scripts/update_compatibility_doc` makes it from the code and from the installed rdma-core;
the test `docs/compatibility` fails when the installed headers or libraries have a function that has no row here.

| state | meaning |
|---|---|
| works | rocegw implements the function; a note names what it refuses |
| refused | the call fails with that errno, as the manual page says for a device that lacks the function |
| passed through | the installed library's own code runs; it needs no device, or calls the functions in the note |
| missing | rocegw does not handle the function; the installed library decides what happens |

For objects of other devices in the same program the installed library's functions are called, always.

## Where test suites differ

Some test suites assume behaviour that neither IBTA nor the manual pages promise:

- **A bind of a type 2 window by a work request updates `mw->rkey`.** Here `mw->rkey` keeps its value; the program
  knows the key that it bound. The manual page names the key of the work request. `ibv_bind_mw` of type 1 updates
  `mw->rkey`.
- **A region of no bytes can be registered.** Here the call fails with `EINVAL`. Drivers of RNICs differ about an empty
  range; an inline send needs no region.
- **Sends can be posted before RTS.** Here `ibv_post_send` returns `EINVAL`. IBTA 10.3.1: a send queue takes work in
  RTS, SQD, SQE and error.
- **A wrong local key is found when the bytes are sent.** Here the request completes with `LOC_PROT_ERR` before a packet
  is sent, because the library may take the bytes when the request is posted.
"""


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def names(path):
    return set(re.findall(r"^(\w+)$", read(path), re.M))


def client_sources():
    for folder, _, files in os.walk(CLIENT):
        for name in files:
            if name.endswith((".cc", ".h")):
                yield read(os.path.join(folder, name))


class Ours:
    """What the client's sources say."""

    def __init__(self):
        self.exports = names(os.path.join(CLIENT, "exports.txt"))
        self.passed = names(os.path.join(CLIENT, "passed_through.txt"))
        sources = list(client_sources())
        # Operations of a context, and those of extended queue pairs and completion queues.
        self.slots = {slot for text in sources for slot in re.findall(r"(?:verbs->|ops\.)(\w+) = &\w", text)}
        self.object_slots = {slot for text in sources for slot in re.findall(r"\bex\.(\w+) = &\w", text)}
        listed = read(os.path.join(CLIENT, "device/refusals.h"))
        rows = re.findall(r'R\((\w+), (\w+),\s*\\?\s*"([^"]*)"\)', listed)
        whole = listed[listed.index("#define ROCEGW_REFUSALS"):listed.index("#define ROCEGW_PARTS_REFUSED")]
        self.refused = {name: (error, why) for name, error, why in rows if f"R({name}," in whole}
        self.partly = {name: (error, why) for name, error, why in rows if name not in self.refused}
        used = {name for text in sources for name in re.findall(r"\brefusal::(\w+)", text)}
        for name in sorted(set(self.refused) ^ used - set(self.partly)):
            sys.exit(f"refusals.h: {name} is listed and not used, or the reverse")


def version_nodes(library):
    """Exported public functions of an installed library."""
    path = subprocess.run(["cc", f"-print-file-name={library}.so"], check=True, stdout=subprocess.PIPE, text=True)
    listed = subprocess.run(["nm", "-D", "--defined-only", "--with-symbol-versions", path.stdout.strip()], check=True,
                            stdout=subprocess.PIPE, text=True).stdout
    found = re.findall(r" [TtiW] (\w+)@+(\w+)\.(\w+)$", listed, re.M)
    return {name for name, node, _ in found if "PRIVATE" not in node}


def inline_functions(headers):
    """Name to body, of those that a program may call."""
    found = {}
    for header in headers:
        for name, _, body in INLINE.findall(read(os.path.join(INCLUDE, header))):
            # ___ibv_query_port and the like stand behind a macro of the name that programs write.
            public = re.sub(r"^_{2,}", "", name)
            if public.startswith(("ibv_", "rdma_")):
                found.setdefault(public, body)
    return found


def noted(ours, name):
    if name not in ours.partly:
        return WORKS, ""
    error, why = ours.partly[name]
    return WORKS, f"`{error}`: {why}"


def state_of_exported(ours, name):
    if name in ours.refused:
        error, why = ours.refused[name]
        return f"{REFUSED}, `{error}`", why
    if name in ours.exports:
        return noted(ours, name)
    return (PASSED, "") if name in ours.passed else (MISSING, "")


def state_of_inline(ours, name, body):
    if name in ours.refused:
        error, why = ours.refused[name]
        return f"{REFUSED}, `{error}`", why
    slots = {slot for found in CONTEXT_SLOT.findall(body) for slot in found if slot and slot != "op"}
    of_object = {slot for found in OBJECT_SLOT.findall(body) for slot in found if slot}
    calls = sorted(set(CALL.findall(body)) - {name})
    if slots & ours.slots or of_object & ours.object_slots:
        return noted(ours, name)
    if slots:
        plain = [call for call in calls if call in ours.exports and call not in ours.refused]
        if plain:
            return WORKS, f"`EOPNOTSUPP`: more than `{plain[0]}` takes"
        return f"{REFUSED}, `EOPNOTSUPP`", "no such operation on our devices"
    if of_object:
        return f"{REFUSED}, `EOPNOTSUPP`", "an object that would have it is refused when it is made"
    # rdma_seterrno only sets the calling thread's errno.
    return PASSED, ", ".join(f"`{call}`" for call in calls if call != "rdma_seterrno") or "inline"


def later_rows(ours):
    """Functions that the installed release does not have yet."""
    names_of = re.findall(r"^(lib\w+) \S+ (\w+)$", read(os.path.join(CLIENT, "drop_in/later_names.txt")), re.M)
    table = {name: state_of_exported(ours, name) for library, name in names_of if name not in version_nodes(library)}
    return [f"| `{name}` | {state} | {note} |" for name, (state, note) in sorted(table.items())]


def rows(ours, library, headers):
    table = {name: state_of_exported(ours, name) for name in version_nodes(library)}
    for name, body in inline_functions(headers).items():
        if name not in table:
            table[name] = state_of_inline(ours, name, body)
        elif name in ours.exports and table[name][0] == WORKS:
            table[name] = noted(ours, name)
    return [f"| `{name}` | {state} | {note} |" for name, (state, note) in sorted(table.items())]


def section(title, listed):
    return f"\n## {title}\n\n| function | state | |\n|---|---|---|\n" + "\n".join(listed) + "\n"


def main():
    ours = Ours()
    text, everything = HEADER, []
    for library, headers in LIBRARIES:
        listed = rows(ours, library, headers)
        everything += listed
        text += section(library, listed)
    listed = later_rows(ours)
    everything += listed
    text += section("Later releases of both", listed)
    if "--check" not in sys.argv:
        with open(DOCUMENT, "w", encoding="utf-8") as file:
            file.write(text)
        return 0
    known = set(read(DOCUMENT).splitlines())
    lacking = [row for row in everything if row not in known]
    for row in lacking:
        print(f"docs/user/compatibility.md lacks: {row}")
    if lacking or not everything:
        print("run scripts/update_compatibility_doc")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
