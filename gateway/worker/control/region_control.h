// SPDX-License-Identifier: Apache-2.0
// Control messages for memory regions and windows. Removal is answered when no operation can use
// the object any more. Belongs to one worker.
#pragma once

#include <cerrno>

#include "gateway/verbs/mr_table.h"
#include "gateway/worker/memory/memory_executor.h"

namespace rocegw::worker {

class RegionControl {
 public:
  // The arguments must outlive the object.
  RegionControl(verbs::MrTable& regions, MemoryExecutor& memory)
      : regions_(regions), memory_(memory) {}

  ControlReply Do(const LinkRegion& body) {
    return Failed(regions_.Link(body.config) ? 0 : EEXIST);
  }
  ControlReply Do(const LinkWindow& body) {
    return Failed(regions_.LinkWindow(body.name, *body.window) ? 0 : EEXIST);
  }
  // Reply later, by the cookie.
  void Do(const UnlinkRegion& body, uint64_t cookie) {
    memory_.ReplyWhenUnused(body.session, cookie, regions_.Unlink(body.key));
  }
  void Do(const RelinkRegion& body, uint64_t cookie) {
    memory_.ReplyWhenUnused(body.config.session, cookie, regions_.Replace(body.config));
  }
  void Do(const UnlinkWindow& body, uint64_t cookie) {
    memory_.ReplyWhenUnused(body.session, cookie, regions_.UnlinkWindow(body.name));
  }

 private:
  verbs::MrTable& regions_;
  MemoryExecutor& memory_;
};

}  // namespace rocegw::worker
