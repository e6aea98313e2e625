// SPDX-License-Identifier: Apache-2.0
// File with the keys that the gateways of a fleet share. One key per line, 32 hexadecimal digits
// (128 bits); empty lines and lines that begin with '#' are ignored. The first key makes tags; the
// others only verify. One thread.
#pragma once

#include <string>

#include "gateway/base/fleet_keys.h"
#include "gateway/base/status.h"

namespace rocegw::daemon {

// Reads the keys in the order of the file; the result has the default policy. An error says what is
// wrong and how to mend it, and never shows a part of a key. Refused: a file that others than its
// owner may read or write, that neither root nor this process's user owns, or that is no regular
// file.
StatusOr<FleetKeys> ReadKeyFile(const std::string& path);

// Tells whether a key file was written or replaced since the last look.
class KeyFileWatch {
 public:
  // Returns true if the file is not what it was at the last call, and there.
  bool HasChanged(const std::string& path);
  // Lets the next call return true, because the file could not be read.
  void Forget() { seen_ = {}; }

 private:
  struct Stamp {
    uint64_t device = 0;
    uint64_t inode = 0;
    int64_t size = 0;
    int64_t changed_ns = 0;
    bool operator==(const Stamp&) const = default;
  };
  Stamp seen_;
};

}  // namespace rocegw::daemon
