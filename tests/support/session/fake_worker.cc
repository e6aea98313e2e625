// SPDX-License-Identifier: Apache-2.0
#include "tests/support/session/fake_worker.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "gateway/verbs/qp_state.h"

namespace rocegw::testing {
namespace {

worker::QpSnapshot SnapshotOf(const FakeWorker::LinkedQp& qp) {
  worker::QpSnapshot snapshot;
  snapshot.session = qp.config.session;
  snapshot.qp_handle = qp.config.qp_handle;
  snapshot.qpn = qp.config.qpn;
  snapshot.type = qp.config.type;
  snapshot.attributes = qp.attributes;
  snapshot.on_channel = qp.channel.has_value() && qp.declined == wire::ChannelReason::kNone;
  if (snapshot.on_channel) snapshot.channel = qp.channel->acceptor;
  snapshot.declined = qp.declined;
  snapshot.endpoint = qp.endpoint;
  return snapshot;
}

}  // namespace

FakeWorker::FakeWorker(WorkerIndex index, int control_wake_fd, size_t ring_capacity)
    : link(ring_capacity), index_(index), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  link.worker_wake_fd = wake_.get();
  link.control_wake_fd = control_wake_fd;
}

int FakeWorker::Broken(const std::string& rule) {
  broken_rules.push_back("worker " + std::to_string(index_) + ": " + rule);
  return EINVAL;
}

int FakeWorker::TakeFailure() {
  if (fail_next != 0 && fail_after > 0) {
    --fail_after;
    return 0;
  }
  if (fail_next == 0 || --fail_times > 0) return fail_next;
  fail_times = 1;
  return std::exchange(fail_next, 0);
}

// A command that the end of its session overtook takes back what it made after all is gone.
FakeWorker::Session* FakeWorker::FindOrNull(SessionId id) {
  const auto it = sessions.find(id.value);
  return it == sessions.end() ? nullptr : &it->second;
}

FakeWorker::Session* FakeWorker::Find(SessionId id, const char* what) {
  const auto it = sessions.find(id.value);
  if (it == sessions.end()) {
    Broken(std::string(what) + " of an unknown session");
    return nullptr;
  }
  return &it->second;
}

int FakeWorker::Apply(const worker::LinkSession& m) {
  if (sessions.contains(m.session.value)) return Broken("session linked twice");
  if (m.line == nullptr || (!m.xrc_domain && (m.space == nullptr || m.wake_fd < 0)))
    return Broken("session without parts");
  if (const int error = TakeFailure()) return error;
  sessions[m.session.value].link = m;
  return 0;
}

int FakeWorker::Apply(const worker::UnlinkSession& m) {
  const auto it = sessions.find(m.session.value);
  if (it == sessions.end()) return ENOENT;
  const Session& session = it->second;
  if (!session.qps.empty() || !session.cqs.empty() || !session.srqs.empty() ||
      !session.mrs.empty() || !session.windows.empty()) {
    Broken("session unlinked before its objects");
  }
  sessions.erase(it);
  return 0;
}

int FakeWorker::Apply(const worker::UseCopier& m) {
  Session* const session = Find(m.session, "copier");
  if (session == nullptr) return EINVAL;
  if (m.copier == nullptr || session->link.copier != nullptr) return Broken("copier twice");
  session->link.copier = m.copier;
  return 0;
}

int FakeWorker::Apply(const worker::AddDoorbellPage& m) {
  Session* const session = Find(m.session, "doorbell page");
  if (session == nullptr) return EINVAL;
  if (m.page != session->pages.size() || m.memory == nullptr)
    return Broken("doorbell page out of order");
  session->pages.push_back(m.memory);
  return 0;
}

int FakeWorker::Apply(const worker::LinkCq& m) {
  Session* const session = Find(m.config.session, "CQ");
  if (session == nullptr) return EINVAL;
  if (session->cqs.contains(m.config.cq_handle)) return Broken("CQ linked twice");
  if (m.config.worker_slot != index_) return Broken("CQ ring of another worker");
  if (const int error = TakeFailure()) return error;
  // The memory must be there, and writable for us.
  m.config.ring[m.config.entries - 1].reserved[0] = 0;
  session->cqs[m.config.cq_handle] = m.config;
  return 0;
}

int FakeWorker::Apply(const worker::ResizeCq& m) {
  Session* const session = Find(m.session, "ResizeCq");
  if (session == nullptr || !session->cqs.contains(m.cq_handle))
    return Broken("unknown CQ resized");
  if (m.most == 0 || m.most > m.entries) return Broken("more may wait than there is room for");
  if (const int error = TakeFailure()) return error;
  verbs::CqConfig& cq = session->cqs[m.cq_handle];
  cq.entries = m.entries;
  cq.ring = m.ring;
  return 0;
}

int FakeWorker::Apply(const worker::ModerateCq& m) {
  Session* const session = Find(m.session, "ModerateCq");
  if (session == nullptr || !session->cqs.contains(m.cq_handle))
    return Broken("unknown CQ moderated");
  session->moderated[m.cq_handle] = m;
  return 0;
}

int FakeWorker::Apply(const worker::UnlinkCq& m, worker::ControlReply& reply) {
  Session* const session = FindOrNull(m.session);
  if (session == nullptr) return ENOENT;
  for (const auto& [qpn, qp] : session->qps) {
    if (qp.config.send_cq == m.cq_handle || qp.config.recv_cq == m.cq_handle)
      Broken("CQ unlinked before its QPs");
  }
  for (const auto& [handle, srq] : session->srqs)
    if (srq.domain.value != 0 && srq.cq == m.cq_handle) Broken("CQ unlinked before its SRQ");
  if (session->cqs.erase(m.cq_handle) == 0) return ENOENT;
  reply.events_reported = cq_events[m.cq_handle];
  return 0;
}

int FakeWorker::Apply(const worker::LinkSrq& m) {
  Session* const session = Find(m.config.session, "SRQ");
  if (session == nullptr) return EINVAL;
  if (session->srqs.contains(m.config.srq_handle)) return Broken("SRQ linked twice");
  if (m.config.domain.value != 0) {
    const Session* const domain = FindOrNull(m.config.domain);
    if (domain == nullptr || !domain->link.xrc_domain) return Broken("SRQ without its domain");
    if (!session->cqs.contains(m.config.cq)) return Broken("SRQ of a domain without its CQ");
  }
  if (const int error = TakeFailure()) return error;
  session->srqs[m.config.srq_handle] = m.config;
  return 0;
}

int FakeWorker::Apply(const worker::UnlinkSrq& m) {
  Session* const session = FindOrNull(m.session);
  if (session == nullptr) return ENOENT;
  for (const auto& [qpn, qp] : session->qps)
    if (qp.config.srq == m.srq_handle) Broken("SRQ unlinked before its QPs");
  return session->srqs.erase(m.srq_handle) == 0 ? ENOENT : 0;
}

int FakeWorker::Apply(const worker::ArmSrq& m) {
  Session* const session = Find(m.session, "ArmSrq");
  if (session == nullptr || !session->srqs.contains(m.srq_handle))
    return Broken("unknown SRQ armed");
  session->srqs[m.srq_handle].limit = m.limit;
  return 0;
}

int FakeWorker::Apply(const worker::ResizeSrq& m) {
  Session* const session = Find(m.session, "ResizeSrq");
  if (session == nullptr || !session->srqs.contains(m.srq_handle))
    return Broken("unknown SRQ resized");
  if (const int error = TakeFailure()) return error;
  verbs::SrqConfig& srq = session->srqs[m.srq_handle];
  srq.entries = m.entries;
  srq.order = m.order;
  srq.slots = m.slots;
  return 0;
}

int FakeWorker::Apply(const worker::QuerySrq& m, worker::ControlReply& reply) {
  Session* const session = Find(m.session, "QuerySrq");
  if (session == nullptr || !session->srqs.contains(m.srq_handle))
    return Broken("unknown SRQ queried");
  reply.srq_limit = session->srqs[m.srq_handle].limit;
  return 0;
}

int FakeWorker::Apply(const worker::SnapshotSrqs&, worker::ControlReply& reply) {
  for (const auto& [id, session] : sessions) {
    for (const auto& [handle, srq] : session.srqs) {
      worker::SrqSnapshot& row = reply.srqs.emplace_back();
      row.session = session.link.session;
      row.srq_handle = handle;
      row.limit = srq.limit;
      row.waiting = srq.control->producer;
    }
  }
  return 0;
}

int FakeWorker::Apply(const worker::PrepareQp& m) {
  for (const auto& [id, session] : sessions) {
    if (session.qps.contains(m.qpn.value)) return Broken("linked QPN made ready");
  }
  return ready.insert(m.qpn.value).second ? 0 : Broken("QPN made ready twice");
}

int FakeWorker::Apply(const worker::LinkQp& m) {
  Session* const session = Find(m.config.session, "QP");
  if (session == nullptr) return EINVAL;
  for (const auto& [id, other] : sessions) {
    if (other.qps.contains(m.config.qpn.value)) return Broken("QPN linked twice");
  }
  if ((m.config.type == verbs::QpType::kXrcReceive) != session->link.xrc_domain)
    return Broken("QP of another kind than its session");
  if (session->link.xrc_domain) {
    if (const int error = TakeFailure()) return error;
    m.config.status->state = 0;
    session->qps[m.config.qpn.value] = {m.config, {}};
    return 0;
  }
  if (!session->cqs.contains(m.config.send_cq) || !session->cqs.contains(m.config.recv_cq)) {
    return Broken("QP without its CQs");
  }
  if (m.config.srq != 0 && !session->srqs.contains(m.config.srq))
    return Broken("QP on another worker than its SRQ");
  if (m.config.doorbell_page >= session->pages.size())
    return Broken("QP without its doorbell page");
  for (const auto& [qpn, qp] : session->qps) {
    if (qp.config.doorbell_page == m.config.doorbell_page &&
        qp.config.doorbell_bit == m.config.doorbell_bit) {
      return Broken("doorbell bit used twice");
    }
  }
  if (const int error = TakeFailure()) return error;
  ready.erase(m.config.qpn.value);
  m.config.status->state = 0;
  session->qps[m.config.qpn.value] = {m.config, {}};
  return 0;
}

int FakeWorker::Apply(const worker::UnlinkQp& m) {
  if (m.session == SessionId{}) return ready.erase(m.qpn.value) == 0 ? ENOENT : 0;
  Session* const session = FindOrNull(m.session);
  if (session == nullptr) return ENOENT;
  return session->qps.erase(m.qpn.value) == 0 ? ENOENT : 0;
}

int FakeWorker::Apply(const worker::ModifyQp& m, worker::ControlReply& reply) {
  Session* const session = Find(m.session, "ModifyQp");
  if (session == nullptr || !session->qps.contains(m.qpn.value))
    return Broken("unknown QP modified");
  LinkedQp& qp = session->qps[m.qpn.value];
  const verbs::QpState next =
      (m.mask & verbs::kAttrState) != 0 ? m.attributes.state : qp.attributes.state;
  if (const int error = verbs::CheckTransition(qp.config.type, qp.attributes.state, next, m.mask))
    return error;
  verbs::TakeAttributes(m.mask, m.attributes, qp.attributes);
  qp.attributes.state = next;
  if (next == verbs::QpState::kRtr) qp.channel = m.channel;
  qp.config.status->state = static_cast<uint32_t>(next);
  reply.qps.push_back(SnapshotOf(qp));
  return 0;
}

int FakeWorker::Apply(const worker::QueryQp& m, worker::ControlReply& reply) {
  Session* const session = Find(m.session, "QueryQp");
  if (session == nullptr || !session->qps.contains(m.qpn.value))
    return Broken("unknown QP queried");
  reply.qps.push_back(SnapshotOf(session->qps[m.qpn.value]));
  return 0;
}

// Endpoints refuse the state EXCEPTION, which only they enter.
int FakeWorker::Apply(const worker::MoveEndpoint& m) {
  Session* const session = Find(m.session, "MoveEndpoint");
  if (session == nullptr || !session->qps.contains(m.qpn.value))
    return Broken("unknown endpoint moved");
  LinkedQp& qp = session->qps[m.qpn.value];
  if (qp.config.type != verbs::QpType::kEndpoint) return Broken("no endpoint moved");
  if (m.to == transport::EndpointState::kException) return EINVAL;
  qp.endpoint.state = m.to;
  qp.notify = m.notify;
  return 0;
}

int FakeWorker::Apply(const worker::KnowPeer&) { return 0; }

int FakeWorker::Apply(const worker::NameMember& m) {
  if (m.member)
    members.insert(m.peer);
  else
    members.erase(m.peer);
  return 0;
}

int FakeWorker::Apply(const worker::UseKeys& m) {
  keys = m.keys;
  return 0;
}

int FakeWorker::Apply(const worker::UsePeerRules& m, worker::ControlReply& reply) {
  std::map<wire::Gid, uint32_t> revoked;
  for (auto& [id, session] : sessions) {
    if (session.link.share != m.pool) continue;
    for (auto& [qpn, qp] : session.qps) {
      qp.config.peers = m.rules;
      const wire::Gid& peer = qp.attributes.path.destination;
      if (qp.attributes.state != verbs::QpState::kRtr &&
          qp.attributes.state != verbs::QpState::kRts)
        continue;
      if (m.rules == nullptr || m.rules->Allow(peer)) continue;
      qp.attributes.state = verbs::QpState::kError;
      ++revoked[peer];
    }
  }
  for (const auto& [peer, count] : revoked) reply.revoked.push_back({peer, count});
  return 0;
}

int FakeWorker::Apply(const worker::LinkPeer& m) {
  Session* const session = Find(m.session, "peer");
  if (session == nullptr) return EINVAL;
  return session->peers.emplace(m.handle, m.peer).second ? 0 : Broken("peer linked twice");
}

int FakeWorker::Apply(const worker::LinkGroup& m) {
  Session* const session = Find(m.config.session, "group");
  if (session == nullptr) return EINVAL;
  if (const int error = TakeFailure()) return error;
  return session->groups.emplace(m.config.number.value, m.config).second
             ? 0
             : Broken("group linked twice");
}

int FakeWorker::Apply(const worker::UnlinkGroup& m) {
  Session* const session = Find(m.session, "group");
  if (session == nullptr) return EINVAL;
  for (const auto& [number, qp] : session->qps)
    if (qp.config.group == m.number) return Broken("group unlinked before its members");
  return session->groups.erase(m.number.value) != 0 ? 0 : Broken("unknown group unlinked");
}

int FakeWorker::Apply(const worker::UnlinkPeer& m) {
  Session* const session = Find(m.session, "peer");
  if (session == nullptr) return EINVAL;
  return session->peers.erase(m.handle) != 0 ? 0 : Broken("unknown peer unlinked");
}

int FakeWorker::Apply(const worker::Multicast& m) {
  if (Find(m.session, "Multicast") == nullptr) return EINVAL;
  const auto [first, last] = multicast.equal_range({m.device, m.group});
  for (auto member = first; member != last; ++member) {
    if (member->second != m.qpn.value) continue;
    if (m.attached) return Broken("attached twice");
    multicast.erase(member);
    return 0;
  }
  if (!m.attached) return Broken("detached what is not attached");
  multicast.insert({{m.device, m.group}, m.qpn.value});
  return 0;
}

int FakeWorker::Apply(const worker::LinkRegion& m) {
  Session* const session = Find(m.config.session, "region");
  if (session == nullptr) return EINVAL;
  for (const auto& [id, other] : sessions) {
    if (other.mrs.contains(m.config.key.value)) return Broken("key linked twice");
  }
  if (const int error = TakeFailure()) return error;
  session->mrs[m.config.key.value] = m.config;
  return 0;
}

int FakeWorker::Apply(const worker::RelinkRegion& m) {
  Session* const session = FindOrNull(m.config.session);
  if (session == nullptr) return ENOENT;
  const auto linked = session->mrs.find(m.config.key.value);
  if (linked == session->mrs.end()) return Broken("a key changes that is not linked");
  if (const int error = TakeFailure()) return error;
  if (on_relink) on_relink(m.config);
  linked->second = m.config;
  return 0;
}

int FakeWorker::Apply(const worker::UnlinkRegion& m) {
  Session* const session = FindOrNull(m.session);
  if (session == nullptr) return ENOENT;
  return session->mrs.erase(m.key.value) == 0 ? ENOENT : 0;
}

int FakeWorker::Apply(const worker::LinkWindow& m) {
  Session* const session = Find(m.session, "window");
  if (session == nullptr) return EINVAL;
  if (m.window == nullptr || m.name == 0) return Broken("window without a name");
  for (const auto& [id, other] : sessions) {
    if (other.windows.contains(m.name)) return Broken("window linked twice");
  }
  if (const int error = TakeFailure()) return error;
  session->windows[m.name] = m.window;
  return 0;
}

int FakeWorker::Apply(const worker::UnlinkWindow& m) {
  Session* const session = FindOrNull(m.session);
  if (session == nullptr) return ENOENT;
  return session->windows.erase(m.name) == 0 ? ENOENT : 0;
}

int FakeWorker::Apply(const worker::SnapshotQps& m, worker::ControlReply& reply) {
  for (const auto& [id, session] : sessions) {
    if (m.session.value != 0 && m.session.value != id) continue;
    for (const auto& [qpn, qp] : session.qps) reply.qps.push_back(SnapshotOf(qp));
  }
  return 0;
}

worker::ControlReply FakeWorker::Answer(const worker::ControlMessage& message) {
  worker::ControlReply reply;
  std::visit(
      [&](const auto& body) {
        using Body = std::decay_t<decltype(body)>;
        if constexpr (std::is_same_v<Body, std::monostate>) {
          Broken("empty message");
        } else if constexpr (std::is_same_v<Body, worker::SendMad>) {
          mads.push_back(body);
        } else if constexpr (std::is_same_v<Body, worker::UsePorts>) {
          ports = body.ports;
        } else if constexpr (std::is_same_v<Body, worker::UseChannels>) {
          channels = body.options;
        } else if constexpr (std::is_same_v<Body, worker::SnapshotChannels>) {
          reply.channels = channel_rows;
        } else if constexpr (std::is_same_v<Body, worker::SnapshotPeers>) {
          reply.peers = peer_rows;
        } else if constexpr (requires { Apply(body, reply); }) {
          reply.error = Apply(body, reply);
        } else {
          reply.error = Apply(body);
        }
      },
      message.body);
  return reply;
}

bool FakeWorker::Pump(size_t limit) {
  bool any = false;
  worker::ControlMessage message;
  while (limit-- != 0 && link.to_worker.Pop(message)) {
    any = true;
    worker::ControlReply reply = Answer(message);
    if (message.cookie != 0) Raise({message.cookie, std::move(reply)});
  }
  return any;
}

void FakeWorker::Raise(worker::WorkerMessage message) {
  if (!link.to_control.Push(std::move(message))) Broken("ring to the control thread is full");
  const uint64_t one = 1;
  (void)!::write(link.control_wake_fd, &one, sizeof one);
}

}  // namespace rocegw::testing
