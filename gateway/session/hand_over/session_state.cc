// SPDX-License-Identifier: Apache-2.0
// State of a session for a gateway that takes over (gateway/hand_over/state_stream.h), and its
// links to that gateway's workers.
#include <algorithm>
#include <string>
#include <utility>

#include "gateway/session/attach/client_call_queue.h"
#include "gateway/session/client_session.h"
#include "gateway/session/commands/link_configs.h"
#include "gateway/session/hand_over/objects_state.h"
#include "gateway/session/objects/session_costs.h"

namespace rocegw::session {

using hand_over::StateKind;
using hand_over::StateRecord;
using hand_over::StateStream;

namespace {

constexpr uint64_t kMostCharged = uint64_t{1} << 46;
constexpr uint32_t kMostChunks = 1u << 16;

// Returns true for queue pairs that gateways before version 4 of the state would not understand.
bool IsLater(const Qp& qp) {
  return qp.type == verbs::QpType::kEndpoint &&
         (qp.srq != 0 || qp.suspends_on_failure || qp.drains);
}

}  // namespace

void PoolRules::HandOver(StateStream& state, tenant::Pool& pool, Resource resource,
                         tenant::Charge& charge) {
  uint64_t amount = charge.amount();
  state(amount);
  const bool possible = state.Require(amount <= kMostCharged, "amount out of range");
  if (!possible || !state.reading() || amount == 0) return;
  pool.Adopt(resource, amount);
  charge = {pool, resource, amount};
}

const char* ClientSession::Unsettled() const {
  if (!greeted()) return "is attaching";
  if (ending_) return "is ending";
  if (!exchange_.settled()) return "has a request in progress";
  return exchange_.call_queue()->held() != 0 ? "has a call in progress" : nullptr;
}

const char* ClientSession::NotHandedOver(uint16_t version) const {
  if (pool().leaving()) return "is of a pool that was removed";
  if (!segment_.segment().for_successor()) return "has shared memory that is sealed for ever";
  if (trusted_ && (memory_.copier() != nullptr || memory_.expects_devices()))
    return "has loaded CUDA, so its memory may be a GPU's";
  if (version < 4) {
    bool later = false;
    objects_.qps.ForEach([&](uint32_t, const Qp& qp) { later |= IsLater(qp); });
    if (later)
      return "has an endpoint with a shared receive queue, one that drains, or one that failures "
             "suspend, which the new version does not know";
  }
  if (version >= 3) return nullptr;
  if (objects_.xrcds.size() != 0) return "has an XRC domain, which the new version does not know";
  bool more = objects_.groups.size() + objects_.peers.size() != 0;
  objects_.qps.ForEach([&](uint32_t, const Qp& qp) { more |= qp.type > verbs::QpType::kUd; });
  return more ? "has endpoints or queue pairs of XRC, which the new version does not know"
              : nullptr;
}

void ClientSession::Offer(OfferedFds& fds) const {
  if (memory_.descriptor() >= 0)
    fds.push_back({FdKind::kClientMemory, std::to_string(id_.value), memory_.descriptor()});
  for (uint32_t c = 0; c < segment_.segment().chunk_count(); ++c)
    fds.push_back({FdKind::kChunk, FdName(id_, c), segment_.segment().chunk(c).fd()});
  links_.Offer(fds);
  OfferObjects(*this, fds);
}

void ClientSession::HandOver(StateStream& state, InheritedFds* inherited) {
  const StateRecord record(state, StateKind::kSession);
  auto& [ended_call, id, services, cm, captures, quota, trusted, peer, sink, exchange, attached_ns,
         library_minor, link_error, ending, ended, counted, reserve, segment, event_limits, objects,
         client_memory, links, async_events, release] = *this;
  // Links, and what the owner hands over.
  (void)ended_call, (void)id, (void)services, (void)cm, (void)captures;
  (void)quota, (void)peer, (void)async_events, (void)release;
  (void)sink, (void)reserve, (void)link_error;
  // No request is in progress.
  (void)ending, (void)ended, (void)counted;
  // Parts of the functions below.
  (void)segment, (void)event_limits, (void)objects, (void)client_memory;
  if (!state.reading()) {
    const char* const unsettled = Unsettled();
    state.Require(unsettled == nullptr && NotHandedOver(record.version()) == nullptr,
                  "session is not at rest");
  }
  state(attached_ns, library_minor);
  state.Require(state.Carry(trusted) == trusted, "trust in a pool changed");
  exchange.SetGreeted();
  HandOverMemory(state, inherited);
  if (state.ok()) links.HandOver(state, inherited, !trusted);
  if (state.ok()) HandOverObjects(state, *this, record.version(), inherited);
  if (state.ok()) HandOverEvents(state);
}

// Devices, parts and the copier are made anew: a session with devices' memory is not handed over,
// and a copier at rest is empty.
void ClientMemory::HandOver(StateStream& state, const std::function<UniqueFd()>& take) {
  auto& [services, peer, trusted, is_reachable, expects_devices, access, parts, memory, space,
         devices, by_descriptor, copier, remains] = *this;
  (void)services, (void)peer, (void)trusted, (void)expects_devices, (void)parts, (void)memory;
  (void)space, (void)devices, (void)by_descriptor, (void)copier, (void)remains;
  const uint32_t way = state.Carry(static_cast<uint32_t>(access));
  const bool reachable = state.Carry(is_reachable);
  if (state.reading()) {
    UniqueFd own = take();
    const bool possible = !own.valid() || memory::DescriptorMemory::Check(own.get()).ok();
    if (!state.Require(possible, "descriptor is not a program's memory")) return;
    // The kernel is not asked again if it permits copies: a program that has ended since then would
    // spoil the take-over.
    const bool cross = way == ROCEGW_MEMORY_CROSS;
    if (!state.Require(!cross || MayCross(), "memory of a program of another user")) return;
    Use(cross, std::move(own));
  }
  state.Require(static_cast<uint32_t>(access) == way && is_reachable == reachable,
                "access to a program's memory differs");
}

void SessionSegment::HandOver(StateStream& state,
                              const std::function<UniqueFd(uint32_t chunk)>& take) {
  auto& [services, pool, id, peer, segment, charge, taken_over, chunk_descriptors, announced] =
      *this;
  (void)services, (void)id, (void)peer;
  (void)charge;  // HandOverCharge
  segment.HandOver(state, take);
  taken_over = state.Carry(taken_over, segment.bytes());
  const uint32_t chunks = state.Count(chunk_descriptors.size(), kMostChunks);
  if (!state.Require(chunks == segment.chunk_count(), "chunks differ")) return;
  if (state.reading()) {
    chunk_descriptors.resize(chunks);
    announced = chunks;
  }
  state.Require(announced == chunks, "the program does not know its memory yet");
  for (tenant::Charge& descriptors : chunk_descriptors)
    PoolRules::HandOver(state, pool, Resource::kDescriptors, descriptors);
}

void SessionSegment::HandOverCharge(StateStream& state) {
  const uint64_t charged = state.Carry(charged_, kMostCharged);
  if (!state.reading() || !state.ok()) return;
  charged_ = charged;
  pool_.Adopt(Resource::kSegmentBytes, charged);
}

void ClientSession::HandOverMemory(StateStream& state, InheritedFds* inherited) {
  const auto take = [&](FdKind kind, const std::string& name) {
    return inherited == nullptr ? UniqueFd() : inherited->Take(kind, name);
  };
  memory_.HandOver(state, [&] { return take(FdKind::kClientMemory, std::to_string(id_.value)); });
  if (!state.ok()) return;
  segment_.HandOver(state,
                    [&](uint32_t chunk) { return take(FdKind::kChunk, FdName(id_, chunk)); });
  if (!state.ok()) return;
  const uint64_t ahs = state.Carry(objects_.ahs, kMostCharged);
  segment_.HandOverCharge(state);
  if (!state.reading() || !state.ok()) return;
  objects_.ahs = ahs;
  pool().Adopt(Resource::kAhs, ahs);
}

void ClientSession::HandOverEvents(StateStream& state) {
  objects_.contexts.ForEach([&](uint32_t handle, Context& context) {
    std::vector<EventChannel::Subject> subjects = {AsyncEvents::SubjectOf(ROCEGW_OBJECT_PORT, 1)};
    const auto add = [&](rocegw_object_kind kind, const auto& table, bool all) {
      table.ForEach([&](uint32_t h, const auto& object) {
        if (all || object.context == handle) subjects.push_back(AsyncEvents::SubjectOf(kind, h));
      });
    };
    add(ROCEGW_OBJECT_QP, objects_.qps, false);
    add(ROCEGW_OBJECT_CQ, objects_.cqs, false);
    add(ROCEGW_OBJECT_SRQ, objects_.srqs, true);
    context.async_events->HandOver(state, subjects);
  });
  std::vector<EventChannel::Subject> ids;
  objects_.cm_ids.ForEach([&](uint32_t handle, const CmId&) { ids.push_back(handle); });
  objects_.cm_channels.ForEach(
      [&](uint32_t, CmChannel& channel) { channel.events->HandOver(state, ids); });
}

void ClientSession::LinkAgain() {
  if (!links_.linked()) return;
  const auto answered = [this](const worker::ControlReply& reply) {
    if (reply.error != 0) link_error_ = reply.error;
  };
  WorkerRequests& workers = services_.workers;
  links_.LinkAgain(answered);
  objects_.cqs.ForEach([&](uint32_t handle, const Cq& cq) {
    workers.Broadcast(
        [&](WorkerIndex w) { return worker::LinkCq{CqConfigOf(*this, handle, cq, w)}; }, answered);
    if (cq.moderation == nullptr) return;
    workers.Broadcast(
        [&](WorkerIndex) {
          return worker::ModerateCq{id_, handle, cq.moderation.get(), cq.moderated.count,
                                    Microseconds(cq.moderated.period_us)};
        },
        answered);
  });
  objects_.xrcds.ForEach([&](uint32_t, Xrcd& xrcd) {
    if (!xrcd.domain->linked) workers.Send(xrcd.domain->worker, LinkOf(*xrcd.domain), answered);
  });
  objects_.groups.ForEach([&](uint32_t, const EndpointGroup& group) {
    workers.Send(group.worker, worker::LinkGroup{{id_, group.number, group.dispatch}}, answered);
  });
  objects_.peers.ForEach([&](uint32_t handle, const EndpointPeer& peer) {
    workers.Broadcast(
        [&](WorkerIndex) {
          return worker::LinkPeer{id_, handle, peer.linked};
        },
        answered);
  });
  objects_.srqs.ForEach([&](uint32_t handle, const Srq& srq) {
    workers.Send(srq.worker, worker::LinkSrq{SrqConfigOf(*this, handle, srq)}, answered);
  });
  objects_.qps.ForEach([&](uint32_t handle, const Qp& qp) {
    if (qp.xrcd == 0)
      return workers.Send(qp.worker, worker::LinkQp{QpConfigOf(*this, handle, qp)}, answered);
    XrcDomain& domain = *objects_.xrcds.Find(qp.xrcd)->domain;
    XrcTarget& target = *domain.targets.at(qp.qpn.value);
    if (target.linked) return;
    workers.Send(qp.worker, worker::LinkQp{XrcTargetConfigOf(*this, qp.qpn, domain, target)},
                 answered);
  });
  objects_.mrs.ForEach([&](uint32_t handle, const Mr& mr) {
    const verbs::RegionConfig config = RegionConfigOf(*this, handle, mr);
    workers.Broadcast([&](WorkerIndex) { return worker::LinkRegion{config}; }, answered);
  });
  objects_.mws.ForEach([&](uint32_t, const Mw& mw) {
    workers.Broadcast(
        [&](WorkerIndex) {
          return worker::LinkWindow{id_, verbs::MemoryWindow::NameOf(mw.key), mw.window.get()};
        },
        answered);
  });
  for (const auto& [handle, group] : objects_.multicast) {
    const Qp& qp = *objects_.qps.Find(handle);
    workers.Broadcast(
        [&, &group = group](WorkerIndex) {
          return worker::Multicast{id_, objects_.DeviceOf(qp), group, qp.qpn, true};
        },
        answered);
  }
}

}  // namespace rocegw::session
