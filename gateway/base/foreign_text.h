// SPDX-License-Identifier: Apache-2.0
// Sanitizer for text that other parties chose: names of processes, interfaces and files, messages
// of peers. All code that prints, logs or puts such text into a protobuf string passes it through
// ForeignText first.
#pragma once

#include <string>
#include <string_view>

namespace rocegw {

// Returns `bytes` as UTF-8 that a terminal prints as one line. Bytes that are not UTF-8, control
// characters (C0, DEL, C1) and characters that change the text direction or begin a line (U+200E,
// U+200F, U+2028 to U+202E, U+2066 to U+2069) become \xNN per byte. Printable text is unchanged.
std::string ForeignText(std::string_view bytes);

// As ForeignText, but keeps line feeds and tabs: for text of several lines.
std::string ForeignLines(std::string_view bytes);

}  // namespace rocegw
