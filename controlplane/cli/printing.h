// SPDX-License-Identifier: Apache-2.0
// Objects on stdout in the format that was asked for.
#pragma once

#include <iostream>
#include <string>
#include <vector>

#include "controlplane/cli/documents/documents.h"
#include "controlplane/cli/documents/kinds.h"
#include "controlplane/cli/documents/message_fields.h"
#include "controlplane/cli/program.h"

namespace rocegw::cli {

// single: one object was asked for by name; JSON is then the object itself, not a list.
void PrintObjects(const Program& program, const Kind& kind, const std::vector<MessagePtr>& objects,
                  bool single);

// Messages that are no objects, as JsonText and YamlText take them; false: another format is
// wanted.
template <typename Messages>
bool PrintDocument(const Program& program, const Messages& messages) {
  const std::string& format = program.options.format;
  if (format == "json") std::cout << JsonText(messages);
  if (format == "yaml") std::cout << YamlText(messages);
  return format == "json" || format == "yaml";
}

// A time as "2026-01-31T12:00:00Z", without the fraction of the second.
std::string TimeText(int64_t seconds);

}  // namespace rocegw::cli
