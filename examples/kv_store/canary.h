// SPDX-License-Identifier: Apache-2.0
// Canary workload: writes numbered values, reads them, and compares each with a journal of what was
// acknowledged.
#pragma once

#include <string>

#include "examples/kv_store/client.h"

namespace kv {

// Writes and reads until SIGTERM. `journal`: gets a line with a checksum for each acknowledged
// write. `status`: a file with one line that begins with "intact" or "broken". Returns the exit
// status: 0 if all reads returned what was acknowledged and every request was answered.
int RunCanary(Client& client, const std::string& journal, const std::string& status);

// Reads every key of a journal from the store. Returns 0 if each has the value of its last
// acknowledged write.
int CompareJournal(Client& client, const std::string& journal);

}  // namespace kv
