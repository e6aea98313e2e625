// SPDX-License-Identifier: Apache-2.0
// Commands that attach datagram queue pairs to multicast groups. A group is an address: a pool with
// peer rules joins only the groups that they allow.
#include <algorithm>
#include <cerrno>
#include <functional>
#include <iterator>

#include "gateway/session/client_session.h"
#include "gateway/session/commands/commands.h"

namespace rocegw::session {
namespace {

constexpr char kKernelLimit[] =
    "net.ipv4.igmp_max_memberships (IPv6: net.core.optmem_max), which `sysctl -w` raises";

struct Attachment {
  uint32_t handle = 0;  // handle of the queue pair
  const Qp* qp = nullptr;
  uint32_t device = 0;
  wire::Gid group;
};

Attachment Read(ClientSession& session, Request& request) {
  const auto asked = request.As<rocegw_multicast>();
  Attachment named;
  named.handle = asked.qp;
  named.qp = session.objects().qps.Find(asked.qp);
  if (named.qp != nullptr) named.device = session.objects().DeviceOf(*named.qp);
  std::copy(std::begin(asked.group), std::end(asked.group), named.group.bytes.begin());
  return named;
}

MulticastGroups::Attachment CountedAs(ClientSession& session, const Attachment& what) {
  return {session.pool().id(), what.device, what.group};
}

// Returns 0, or the errno if so many queue pairs of the pool are attached to the group that one
// datagram would keep a worker for long.
int CheckMembers(ClientSession& session, const Attachment& wanted) {
  const uint32_t most = session.options().device.max_multicast;
  if (session.multicast_groups().CountOf(CountedAs(session, wanted)) < most) return 0;
  tenant::Pool& pool = session.pool();
  pool.CountBoundRefused();
  session.reports().Tell("QUOTA_EXCEEDED", pool.name(), "members of a multicast group",
                         pool.name() + ": its programs have attached " + std::to_string(most) +
                             " queue pairs to one multicast group, the most that a pool may");
  return ENOMEM;
}

// Returns 0, or the errno if the pool has its share of groups.
int CheckShare(ClientSession& session, const Attachment& wanted) {
  size_t pools = 0;
  session.pools().ForEachPool([&pools](const tenant::Pool&) { ++pools; });
  const auto share = session.multicast_groups().ShareExceeded(CountedAs(session, wanted), pools);
  if (!share) return 0;
  tenant::Pool& pool = session.pool();
  pool.CountBoundRefused();
  session.reports().Tell("QUOTA_EXCEEDED", pool.name(), "multicast groups",
                         pool.name() + ": its programs hear " + std::to_string(*share) +
                             " multicast groups at one device, the share of each of " +
                             std::to_string(pools) + " pools; the kernel's limit is " +
                             kKernelLimit);
  return ENOMEM;
}

void TellPortRefused(ClientSession& session, const Status& refused) {
  const std::string& pool = session.pool().name();
  std::string text = pool + ": " + refused.text();
  if (refused.error() == ENOBUFS || refused.error() == ENOMEM)
    text += std::string("; the kernel's limit is ") + kKernelLimit;
  session.reports().Tell("QUOTA_EXCEEDED", pool, "multicast groups", text);
}

void TellWorkers(ClientSession& session, const Attachment& what, bool attached) {
  session.workers().Broadcast(
      [&](WorkerIndex) {
        return worker::Multicast{session.id(), what.device, what.group, what.qp->qpn, attached};
      },
      [&session](const worker::ControlReply& told) { session.exchange().Answer(told.error); });
}

}  // namespace

void AttachMulticast(ClientSession& session, Request& request) {
  const Attachment wanted = Read(session, request);
  auto& attached = session.objects().multicast;
  if (wanted.qp == nullptr || wanted.qp->type != verbs::QpType::kUd || !wanted.group.IsMulticast())
    return session.exchange().Error(EINVAL);
  if (attached.contains({wanted.handle, wanted.group})) return session.exchange().Done();
  const uint32_t most = session.options().device.max_multicast;
  if (attached.size() >= most) return session.ReplyBound("multicast attachments", most);
  if (const int error = session.rules().CheckPeer(session.pool(), wanted.group))
    return session.exchange().Error(error);
  if (const int error = CheckMembers(session, wanted)) return session.exchange().Error(error);
  if (const int error = CheckShare(session, wanted)) return session.exchange().Error(error);
  const Status heard = session.multicast_groups().Add(CountedAs(session, wanted));
  if (!heard.ok()) {
    TellPortRefused(session, heard);
    return session.exchange().Error(heard.error());
  }
  attached.insert({wanted.handle, wanted.group});
  TellWorkers(session, wanted, true);
}

void DetachMulticast(ClientSession& session, Request& request) {
  const Attachment known = Read(session, request);
  if (session.objects().multicast.erase({known.handle, known.group}) == 0)
    return session.exchange().Error(EINVAL);
  session.multicast_groups().Remove(CountedAs(session, known));
  TellWorkers(session, known, false);
}

}  // namespace rocegw::session
