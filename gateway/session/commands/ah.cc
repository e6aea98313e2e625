// SPDX-License-Identifier: Apache-2.0
// Address handles: the library creates them itself; the daemon knows only their number.
#include <algorithm>
#include <cerrno>

#include "gateway/session/client_session.h"
#include "gateway/session/commands/commands.h"

namespace rocegw::session {
namespace {

// A library asks for many at a time, so that it asks rarely. It gets at most this fraction of what
// is left, so that others do not lack what it leaves unused.
constexpr uint64_t kShare = 16;

}  // namespace

void TakeAhs(ClientSession& session, Request& request) {
  const uint64_t asked = request.As<rocegw_ahs>().count;
  if (asked == 0) return session.exchange().Error(EINVAL);
  const uint64_t most = std::max<uint64_t>(session.pool().Left(Resource::kAhs) / kShare, 1);
  rocegw_ahs_reply reply{};
  reply.count = static_cast<uint32_t>(std::min(asked, most));
  if (const int error = session.quota().Take(Resource::kAhs, reply.count))
    return session.exchange().Error(error);
  session.objects().ahs += reply.count;
  session.exchange().Reply(reply);
}

void GiveAhs(ClientSession& session, Request& request) {
  const uint32_t given = request.As<rocegw_ahs>().count;
  if (given > session.objects().ahs) return session.exchange().Error(EINVAL);
  session.objects().ahs -= given;
  session.quota().Give(Resource::kAhs, given);
  session.exchange().Done();
}

}  // namespace rocegw::session
