// SPDX-License-Identifier: Apache-2.0
// Output of objects on stdout in the requested format.
#pragma once

#include <iostream>
#include <string>
#include <vector>

#include "controlplane/cli/documents/documents.h"
#include "controlplane/cli/documents/kinds.h"
#include "controlplane/cli/documents/message_fields.h"
#include "controlplane/cli/program.h"

namespace rocegw::cli {

// `single`: an object was requested by name; JSON is then the object, not a list.
void PrintObjects(const Program& program, const Kind& kind, const std::vector<MessagePtr>& objects,
                  bool single);

// Prints messages that are not objects, as JsonText and YamlText do; returns false for other
// formats.
template <typename Messages>
bool PrintDocument(const Program& program, const Messages& messages) {
  const std::string& format = program.options.format;
  if (format == "json") std::cout << JsonText(messages);
  if (format == "yaml") std::cout << YamlText(messages);
  return format == "json" || format == "yaml";
}

// Returns a time as "2026-01-31T12:00:00Z", without the fraction of the second.
std::string TimeText(int64_t seconds);

}  // namespace rocegw::cli
