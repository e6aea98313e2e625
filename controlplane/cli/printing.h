// SPDX-License-Identifier: Apache-2.0
// Objects on stdout in the format that was asked for.
#pragma once

#include <string>
#include <vector>

#include "controlplane/cli/documents.h"
#include "controlplane/cli/kinds.h"
#include "controlplane/cli/message_fields.h"
#include "controlplane/cli/program.h"

namespace rocegw::cli {

// single: one object was asked for by name; JSON is then the object itself, not a list.
void PrintObjects(const Program& program, const Kind& kind, const std::vector<MessagePtr>& objects,
                  bool single);

// A time as "2026-01-31T12:00:00Z", without the fraction of the second.
std::string TimeText(int64_t seconds);

}  // namespace rocegw::cli
