// SPDX-License-Identifier: Apache-2.0
// State of objects that workers change without the control thread: counts of moderated completion
// queues and bindings of memory windows. It is written while the workers rest, behind all sessions.
#include "gateway/hand_over/state_stream.h"
#include "gateway/session/client_session.h"
#include "gateway/session/commands/link_configs.h"
#include "gateway/session/hand_over/objects_state.h"

namespace rocegw::session {

using hand_over::StateStream;

void HandOverShared(StateStream& state, ClientSession& session) {
  Objects& objects = session.objects();
  objects.cqs.ForEach([&](uint32_t, Cq& cq) {
    if (cq.moderation != nullptr) cq.moderation->HandOver(state);
  });
  objects.mws.ForEach([&](uint32_t, Mw& mw) {
    verbs::RegionConfig found;
    mw.window->HandOver(state, [&](MemoryKey key) -> const verbs::RegionConfig* {
      objects.mrs.ForEach([&](uint32_t handle, const Mr& mr) {
        if (mr.key == key) found = RegionConfigOf(session, handle, mr);
      });
      return found.key == key ? &found : nullptr;
    });
  });
}

}  // namespace rocegw::session
