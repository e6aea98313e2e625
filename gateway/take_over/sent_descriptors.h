// SPDX-License-Identifier: Apache-2.0
// Descriptors that the process that takes over has already. They are sent while the running gateway
// serves, and some of their objects end or begin before it rests: what the other process lacks then
// is sent then. Control thread.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <utility>

#include "gateway/base/inherited_fds.h"

namespace rocegw::take_over {

class SentDescriptors {
 public:
  // Returns those of `offered` that are open and that the other process lacks, and counts them as
  // sent.
  OfferedFds Missing(const OfferedFds& offered);
  void clear() { sent_.clear(); }

 private:
  // Two files that are open have different identities, except memory files of one process before
  // and after an exec. The other process keeps what it received, so the identity of a sent file is
  // not given to another one.
  struct Identity {
    dev_t device = 0;
    ino_t inode = 0;

    bool operator==(const Identity&) const = default;
  };

  std::map<std::pair<FdKind, std::string>, Identity> sent_;
};

}  // namespace rocegw::take_over
