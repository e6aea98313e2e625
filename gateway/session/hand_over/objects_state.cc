// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/hand_over/objects_state.h"

#include <memory>
#include <utility>

#include "gateway/cm/hand_over/values_state.h"
#include "gateway/session/cm/cm_binding.h"
#include "gateway/session/objects/session_costs.h"
#include "gateway/session/state/captures.h"
#include "gateway/wire/path_state.h"

namespace rocegw::session {

using hand_over::StateStream;

namespace {

// Limit of handles of a kind; quotas bound objects otherwise.
constexpr uint32_t kMostHandles = 1u << 22;
constexpr uint32_t kMostEntries = 1u << 24;
constexpr uint64_t kMostBytes = uint64_t{1} << 47;
constexpr uint32_t kMostText = 4096;
constexpr const char* kMissing = "object of a session is missing";
// The reason is a static text of the other gateway.
constexpr const char* kChosenBefore = "chosen before the gateway was replaced";

// Hand-over of the objects of one session.
class ObjectsInTransit {
 public:
  ObjectsInTransit(StateStream& state, ClientSession& session, uint16_t version,
                   InheritedFds* inherited)
      : state_(state),
        session_(session),
        objects_(session.objects()),
        version_(version),
        inherited_(inherited) {}

  void All() {
    Each(objects_.contexts, [&](uint32_t h, Context& object) { One(h, object); });
    Each(objects_.pds, [&](uint32_t, Pd& object) { One(object); });
    Each(objects_.channels, [&](uint32_t h, CompletionChannel& object) { One(h, object); });
    Each(objects_.regions, [&](uint32_t h, RemappedRegion& object) { One(h, object); });
    Each(objects_.cqs, [&](uint32_t, Cq& object) { One(object); });
    if (version_ >= 3) {
      Each(objects_.xrcds, [&](uint32_t, Xrcd& object) { One(object); });
      Each(objects_.groups, [&](uint32_t, EndpointGroup& object) { One(object); });
      Each(objects_.peers, [&](uint32_t, EndpointPeer& object) { One(object); });
    }
    state_.Require(version_ >= 3 ||
                       objects_.xrcds.size() + objects_.groups.size() + objects_.peers.size() == 0,
                   "an XRC domain, a group or a peer of endpoints");
    Each(objects_.srqs, [&](uint32_t, Srq& object) { One(object); });
    Each(objects_.qps, [&](uint32_t h, Qp& object) { One(h, object); });
    Each(objects_.mrs, [&](uint32_t, Mr& object) { One(object); });
    Each(objects_.cm_channels, [&](uint32_t h, CmChannel& object) { One(h, object); });
    Each(objects_.cm_ids, [&](uint32_t h, CmId& object) { One(h, object); });
    if (version_ >= 2) {
      Each(objects_.mws, [&](uint32_t, Mw& object) { One(object); });
      Groups();
    }
    if (state_.reading() && state_.ok())
      objects_.cm_ids.ForEach([&](uint32_t, const CmId& id) { CheckRequests(id); });
  }

 private:
  template <typename T, typename F>
  void Each(HandleTable<T>& table, F each) {
    if (state_.ok()) table.HandOver(state_, kMostHandles, each);
  }
  // Hands over a handle of an object that must exist, and counts this user of it.
  template <typename T>
  T* Use(HandleTable<T>& table, uint32_t& handle, bool optional = false) {
    state_(handle);
    T* const found = table.Find(handle);
    state_.Require(found != nullptr || (optional && handle == 0), kMissing);
    if constexpr (requires { found->users; }) {
      if (found != nullptr && state_.reading()) ++found->users;
    }
    return found;
  }
  void Block(shm::Writer writer, uint64_t bytes, shm::Block& block) {
    HandOverBlock(state_, session_.segment(), writer, bytes, block);
  }
  void Charge(Resource resource, tenant::Charge& charge) {
    PoolRules::HandOver(state_, session_.pool(), resource, charge);
  }
  // Takes an amount that the object does not keep as a charge.
  void Adopt(Resource resource, uint64_t amount = 1) {
    if (!state_.reading() || !state_.ok() || amount == 0) return;
    session_.pool().Adopt(resource, amount);
    tenant::SlotShare* const slot = session_.slot().get();
    if (resource == Resource::kQps && slot != nullptr)
      state_.Require(slot->TakeQps(amount), "queue pairs beyond the limit of an attach socket");
  }
  // Charges an amount that is not part of the state.
  void AdoptCharge(Resource resource, uint64_t amount, tenant::Charge& charge) {
    if (!state_.reading() || !state_.ok()) return;
    session_.pool().Adopt(resource, amount);
    charge = tenant::Charge(session_.pool(), resource, amount);
  }
  UniqueFd Take(FdKind kind, const std::string& name) {
    if (!state_.reading() || !state_.ok()) return {};
    UniqueFd fd = inherited_ == nullptr ? UniqueFd() : inherited_->Take(kind, name);
    state_.Require(fd.valid(), "descriptor of a session is missing");
    return fd;
  }
  std::unique_ptr<EventChannel> MakeChannel(char kind, uint32_t handle) {
    return std::make_unique<EventChannel>(
        session_.loop(), session_.event_limits().backlog(),
        Take(FdKind::kEvents, EventsName(session_.id(), kind, handle)));
  }

  void One(uint32_t handle, Context& object) {
    auto& [device, descriptors, async_events] = object;
    state_(device);
    state_.Require(device < session_.devices().size(), "device is missing");
    Charge(Resource::kDescriptors, descriptors);
    if (state_.reading()) async_events = MakeChannel(kAsyncChannel, handle);
  }
  void One(Pd& object) {
    auto& [context, users] = object;
    (void)users;  // counted by them
    Use(objects_.contexts, context);
    Adopt(Resource::kPds);
  }
  void One(uint32_t handle, CompletionChannel& object) {
    auto& [context, descriptors, ours, users] = object;
    (void)users;
    Use(objects_.contexts, context);
    Charge(Resource::kDescriptors, descriptors);
    if (state_.reading())
      ours = Take(FdKind::kEvents, EventsName(session_.id(), kCompletionChannel, handle));
  }
  void One(uint32_t handle, RemappedRegion& object) {
    auto& [charges, memory, device, users] = object;
    (void)device;  // sessions with one are not handed over
    (void)users;
    constexpr Resource kCharged[] = {Resource::kRegisteredBytes, Resource::kRemappedBytes,
                                     Resource::kDescriptors, Resource::kHeapBytes};
    for (size_t i = 0; i < charges.size(); ++i) Charge(kCharged[i], charges[i]);
    uint64_t address = memory == nullptr ? 0 : memory->address();
    uint64_t length = memory == nullptr ? 0 : memory->length();
    state_(address, length);
    if (!state_.reading() || !state_.ok()) return;
    auto adopted = memory::Region::Adopt(Take(FdKind::kRegion, FdName(session_.id(), handle)),
                                         address, length);
    if (!state_.Require(adopted.ok(), "remapped memory cannot be mapped")) return;
    memory = *adopted;
    session_.memory().AddRegion(handle, memory);
  }
  void One(Cq& object) {
    auto& [context, entries, channel, cookie, control, rings, moderation, moderated, users] =
        object;
    (void)users;
    const bool has_moderation = version_ >= 2 && state_.Carry(moderation != nullptr);
    state_.Require(has_moderation == (moderation != nullptr) || state_.reading(),
                   "a completion queue is moderated");
    if (has_moderation) state_(moderated.count, moderated.period_us);
    if (has_moderation && state_.reading()) moderation = std::make_unique<verbs::CqModeration>();
    Use(objects_.contexts, context);
    state_(cookie);
    entries = state_.Carry(entries, kMostEntries);
    Use(objects_.channels, channel, true);
    const uint64_t workers = session_.workers().worker_count();
    state_.Require(std::has_single_bit(entries), "size of a queue is impossible");
    Block(shm::Writer::kClient, sizeof(rocegw_cq_control) + workers * ROCEGW_CACHE_LINE, control);
    Block(shm::Writer::kDaemon, workers * entries * sizeof(rocegw_cqe), rings);
    Adopt(Resource::kCqs);
  }
  void One(Xrcd& object) {
    auto& [context, known, users, left, last] = object;
    (void)users, (void)left, (void)last;  // a domain that is being closed has a request in progress
    Use(objects_.contexts, context);
    auto fresh = std::make_unique<XrcDomain>();
    auto& [id, pool, slot, device, worker, openers, file, descriptor, inode, line, targets,
           linked] = state_.reading() ? *fresh : *known;
    (void)openers;             // counted by sessions
    (void)line, (void)linked;  // the worker's
    (void)targets;             // queue pairs of sessions
    auto& [file_device, number] = inode;
    state_(id, device, file_device, number);
    Worker(worker);
    const bool is_named = state_.Carry(file.valid());
    std::string path = slot == nullptr ? std::string() : slot->path();
    tenant::SlotLimits limits = slot == nullptr ? tenant::SlotLimits() : slot->limits();
    HandOverText(state_, path);
    state_(limits.qps, limits.bytes_per_second);
    state_.Require(device < session_.devices().size(), "device is missing");
    Adopt(Resource::kPds);
    if (!state_.reading() || !state_.ok()) return;
    pool = &session_.pool();
    slot = session_.slots().Of(*pool, path, limits);
    if (is_named && session_.xrc_domains().Find(id) == nullptr) {
      file = ClientFd(Take(FdKind::kXrcFile, std::to_string(id.value)),
                      session_.exchange().call_queue());
      AdoptCharge(Resource::kDescriptors, 1, descriptor);
    }
    known = session_.xrc_domains().Adopt(std::move(fresh));
    state_.Require(known != nullptr, "XRC domain differs");
  }
  void One(EndpointGroup& object) {
    auto& [context, pd, number, worker, key, dispatch, heap, users] = object;
    (void)users;
    Use(objects_.contexts, context);
    Use(objects_.pds, pd);
    state_(number, key);
    Worker(worker);
    state_.Enum(dispatch, verbs::Dispatch::kDepth);
    CheckNumber(number, worker);
    Adopt(Resource::kQps);
    AdoptCharge(Resource::kHeapBytes, kHeapOfGroup, heap);
  }
  void One(EndpointPeer& object) {
    auto& [context, pd, linked, heap] = object;
    auto& [device, endpoint, key, path, target] = linked;
    auto& [gateway, acceptor, peer_worker, instance, features, window] = target;
    Use(objects_.contexts, context);
    Use(objects_.pds, pd);
    state_(device, endpoint, key);
    wire::HandOver(state_, path);
    state_.Bytes(gateway.bytes);
    state_(acceptor, peer_worker, instance, features, window);
    state_.Require(device < session_.devices().size(), "device is missing");
    Adopt(Resource::kAhs);
    AdoptCharge(Resource::kHeapBytes, HeapOfPeer(session_.workers().worker_count()), heap);
  }
  void One(Srq& object) {
    auto& [context, pd, worker, cookie, xrcd, cq, number, entries, capacity, payload_slots, max_sge,
           payload_stride, control, order, slots, payload, heap, users] = object;
    (void)users;
    Use(objects_.contexts, context);
    Use(objects_.pds, pd);
    Worker(worker);
    state_(cookie);
    const Xrcd* const of = version_ >= 3 ? Use(objects_.xrcds, xrcd, true) : nullptr;
    if (of != nullptr) {
      Use(objects_.cqs, cq);
      state_(number);
      state_.Require(of->domain->worker == worker, "shared receive queue of another worker");
      if (state_.reading() && state_.ok())
        state_.Require(session_.xrc_domains().AdoptNumber(number),
                       "number of a shared receive queue twice");
    }
    for (uint32_t* const size : {&entries, &capacity, &payload_slots})
      *size = state_.Carry(*size, kMostEntries);
    max_sge = state_.Carry(max_sge, session_.options().device.max_sge);
    payload_stride = state_.Carry(payload_stride, uint32_t{UINT16_MAX});
    state_.Require(std::has_single_bit(entries) && payload_slots <= entries,
                   "size of a queue is impossible");
    Block(shm::Writer::kClient, sizeof(rocegw_srq_control), control);
    Block(shm::Writer::kClient, uint64_t{entries} * sizeof(uint32_t), order);
    Block(shm::Writer::kClient, uint64_t{entries} * rocegw_rq_stride(max_sge), slots);
    Block(shm::Writer::kDaemon, uint64_t{payload_slots} * payload_stride, payload);
    Charge(Resource::kHeapBytes, heap);
    Adopt(Resource::kSrqs);
  }
  void One(uint32_t handle, Qp& object) {
    auto& [context, pd, send_cq, recv_cq, srq, group, xrcd, type, qpn, peer, worker, cookie,
           sq_entries, rq_entries, max_send_sge, max_recv_sge, max_inline, sq_payload_stride,
           rq_payload_stride, give_up_ms, suspends, drains, service_mode, signal_all,
           any_completion_order, control, status, sq, sq_payload, rq, rq_payload, doorbell_page,
           doorbell_bit, heap, setting_up, now, ece_allowed, any_order, data_path, set_up,
           was_set_up, last] = object;
    (void)last;
    state_.Enum(type, version_ >= 3 ? verbs::QpType::kEndpoint : verbs::QpType::kUd);
    Use(objects_.contexts, context);
    const EndpointGroup* of = nullptr;
    if (version_ >= 3) {
      of = Use(objects_.groups, group, true);
      Use(objects_.xrcds, xrcd, true);
      const bool possible = verbs::IsQpType(type) &&
                            (type == verbs::QpType::kXrcReceive) == (xrcd != 0) &&
                            (of == nullptr || type == verbs::QpType::kEndpoint);
      if (!state_.Require(possible, "queue pair is impossible")) return;
    }
    const Srq* shared = nullptr;
    const bool has_queues = xrcd == 0;
    if (has_queues) {
      Use(objects_.pds, pd);
      Use(objects_.cqs, send_cq);
      Use(objects_.cqs, recv_cq);
      shared = Use(objects_.srqs, srq, true);
    }
    state_(qpn, peer, cookie);
    if (has_queues) state_(doorbell_page, doorbell_bit);
    Worker(worker);
    CheckNumber(qpn, worker);
    if (has_queues) {
      const auto& bounds = session_.options().device;
      sq_entries = state_.Carry(sq_entries, uint32_t{1} << 15);
      rq_entries = state_.Carry(rq_entries, uint32_t{1} << 15);
      max_send_sge = state_.Carry(max_send_sge, bounds.max_sge);
      max_recv_sge = state_.Carry(max_recv_sge, bounds.max_sge);
      max_inline = state_.Carry(max_inline, uint32_t{UINT16_MAX});
      sq_payload_stride = state_.Carry(sq_payload_stride, uint32_t{UINT16_MAX});
      rq_payload_stride = state_.Carry(rq_payload_stride, uint32_t{UINT16_MAX});
      const bool possible = std::has_single_bit(sq_entries) &&
                            (rq_entries == 0 || std::has_single_bit(rq_entries)) &&
                            (shared == nullptr || (rq_entries == 0 && shared->worker == worker)) &&
                            (of == nullptr || of->worker == worker);
      state_.Require(possible, "queue pair is impossible");
      state_.Enum(service_mode, verbs::ServiceMode::kUnordered);
      state_(give_up_ms, signal_all, any_completion_order);
      if (version_ >= 4) state_(suspends, drains);
      Block(shm::Writer::kClient, sizeof(rocegw_qp_control), control);
      Block(shm::Writer::kDaemon, sizeof(rocegw_qp_status), status);
      Block(shm::Writer::kClient, uint64_t{sq_entries} * rocegw_sq_stride(max_send_sge), sq);
      Block(shm::Writer::kClient, uint64_t{sq_entries} * sq_payload_stride, sq_payload);
      Block(shm::Writer::kClient, uint64_t{rq_entries} * rocegw_rq_stride(max_recv_sge), rq);
      Block(shm::Writer::kDaemon, uint64_t{rq_entries} * rq_payload_stride, rq_payload);
      Charge(Resource::kHeapBytes, heap);
    } else {
      state_.Require(worker == objects_.xrcds.Find(xrcd)->domain->worker,
                     "queue pair of another worker");
    }
    state_.Enum(now, verbs::QpState::kError);
    state_(setting_up, ece_allowed, any_order, set_up, was_set_up);
    Adopt(Resource::kQps);
    if (!state_.reading() || !state_.ok()) return;
    if (was_set_up) data_path = kChosenBefore;
    const bool is_new = objects_.qp_by_number.Insert(qpn.value, handle);
    if (xrcd != 0) return OpenTarget(handle, object);
    state_.Require(is_new, "number of a queue pair twice");
    state_.Require(session_.links().doorbells().TakeAt(worker, {doorbell_page, doorbell_bit}),
                   "doorbell is taken");
    session_.captures().QpAdded(session_.pool().name(), qpn);
  }
  // Makes a receiving queue pair of an XRC domain for its first session, and adds the session.
  void OpenTarget(uint32_t handle, const Qp& qp) {
    auto& targets = objects_.xrcds.Find(qp.xrcd)->domain->targets;
    std::unique_ptr<XrcTarget>& target = targets[qp.qpn.value];
    if (target == nullptr) {
      target = std::make_unique<XrcTarget>();
      session_.captures().QpAdded(session_.pool().name(), qp.qpn);
    }
    target->openers.push_back({session_.id(), handle, qp.cookie});
  }
  void One(Mr& object) {
    auto& [context, pd, key, address, length, iova, access, charged, region, kept, windows,
           revoked] = object;
    // All workers of the successor have each region.
    (void)revoked;
    Use(objects_.contexts, context);
    Use(objects_.pds, pd);
    Use(objects_.regions, region, true);
    state_(key, address, length, iova, access, charged, kept);
    const bool everything = length == Mr::kEverything && address == 0 && iova == 0;
    state_.Require(charged <= kMostBytes && length != 0 &&
                       (everything || (length <= kMostBytes && address <= kMostBytes &&
                                       iova <= UINT64_MAX - length)),
                   "memory region is impossible");
    Adopt(Resource::kMrs);
    Adopt(Resource::kRegisteredBytes, charged);
    if (!state_.reading() || !state_.ok()) return;
    if ((access & verbs::kAccessMwBind) != 0) windows = std::make_unique<verbs::BoundWindows>();
    state_.Require(session_.keys().Adopt(key), "key of a memory region twice");
  }
  void One(Mw& object) {
    auto& [context, pd, key, window] = object;
    Use(objects_.contexts, context);
    Use(objects_.pds, pd);
    verbs::MwType type = window == nullptr ? verbs::MwType::kType1 : window->type();
    state_.Enum(type, verbs::MwType::kType2);
    state_(key);
    state_.Require(type >= verbs::MwType::kType1, "memory window is impossible");
    Adopt(Resource::kMrs);
    if (!state_.reading() || !state_.ok()) return;
    window = std::make_unique<verbs::MemoryWindow>(type, session_.id(), pd, key);
    state_.Require(session_.keys().AdoptWindow(key), "key of a memory window twice");
  }
  // The port is a member already, because its sockets are those of the other gateway.
  void Groups() {
    const uint32_t most = session_.options().device.max_multicast;
    const uint32_t count = state_.Count(objects_.multicast.size(), most);
    auto at = objects_.multicast.begin();
    for (uint32_t i = 0; i < count && state_.ok(); ++i) {
      auto [handle, group] = state_.reading() ? std::pair<uint32_t, wire::Gid>{} : *at;
      state_(handle);
      cm::HandOver(state_, group);
      if (!state_.reading()) {
        ++at;
        continue;
      }
      const Qp* const qp = objects_.qps.Find(handle);
      const bool possible = qp != nullptr && qp->type == verbs::QpType::kUd && group.IsMulticast();
      if (!state_.Require(possible, "member of a multicast group is impossible")) return;
      const Status heard = session_.multicast_groups().Add(
          {session_.pool().id(), session_.objects().DeviceOf(*qp), group});
      state_.Require(heard.ok() && objects_.multicast.insert({handle, group}).second,
                     "multicast group cannot be joined");
    }
  }
  void One(uint32_t handle, CmChannel& object) {
    auto& [descriptors, events, users] = object;
    (void)users;
    Charge(Resource::kDescriptors, descriptors);
    if (state_.reading()) events = MakeChannel(kCmChannel, handle);
  }
  void One(uint32_t handle, CmId& object) {
    auto& [engine, channel, qpn, cookie, port_space, listener, first_request, next_request,
           previous_request, listens, events_moved] = object;
    cm::HandOver(state_, engine);
    Use(objects_.cm_channels, channel);
    state_(qpn, cookie);
    cm::HandOver(state_, port_space);
    state_(listener, first_request, next_request, previous_request, listens, events_moved);
    Adopt(Resource::kCmIds);
    if (listens) Adopt(Resource::kListeners);
    if (state_.reading() && qpn != kInvalidQpn) objects_.cm_id_by_qpn.Insert(qpn.value, handle);
  }
  void CheckRequests(const CmId& id) {
    for (const uint32_t named :
         {id.listener, id.first_request, id.next_request, id.previous_request})
      state_.Require(named == 0 || objects_.cm_ids.Find(named) != nullptr, kMissing);
  }
  void CheckNumber(Qpn qpn, WorkerIndex worker) {
    state_.Require(qpn != kInvalidQpn && worker < session_.workers().worker_count() &&
                       session_.steering().WorkerOf(port::BucketOf(qpn)) == worker,
                   "queue pair is impossible");
  }
  void Worker(WorkerIndex& worker) {
    state_(worker);
    state_.Require(worker < session_.workers().worker_count(), "worker is missing");
  }

  StateStream& state_;
  ClientSession& session_;
  Objects& objects_;
  const uint16_t version_;
  InheritedFds* const inherited_;
};

}  // namespace

void HandOverText(StateStream& state, std::string& text) {
  text.resize(state.Count(text.size(), kMostText));
  state.Bytes({reinterpret_cast<uint8_t*>(text.data()), text.size()});
}

std::string FdName(SessionId session, uint32_t number) {
  return std::to_string(session.value) + "/" + std::to_string(number);
}

std::string EventsName(SessionId session, char channel, uint32_t handle) {
  return std::to_string(session.value) + "/" + channel + std::to_string(handle);
}

void HandOverBlock(StateStream& state, shm::Segment& segment, shm::Writer writer, uint64_t bytes,
                   shm::Block& block) {
  auto& [chunk, offset, length, address] = block;
  (void)address;
  state(chunk, offset, length);
  if (!state.Require(length >= bytes, "shared memory of an object is too short")) return;
  if (!state.reading() || length == 0) return;
  state.Require(segment.Adopt(block, writer), "shared memory of an object is not there");
}

void HandOverObjects(StateStream& state, ClientSession& session, uint16_t version,
                     InheritedFds* inherited) {
  ObjectsInTransit(state, session, version, inherited).All();
}

void OfferObjects(const ClientSession& session, OfferedFds& fds) {
  const Objects& objects = session.objects();
  const SessionId id = session.id();
  objects.contexts.ForEach([&](uint32_t handle, const Context& one) {
    fds.push_back({FdKind::kEvents, EventsName(id, kAsyncChannel, handle), one.async_events->fd()});
  });
  objects.channels.ForEach([&](uint32_t handle, const CompletionChannel& one) {
    fds.push_back({FdKind::kEvents, EventsName(id, kCompletionChannel, handle), one.ours.get()});
  });
  objects.cm_channels.ForEach([&](uint32_t handle, const CmChannel& one) {
    fds.push_back({FdKind::kEvents, EventsName(id, kCmChannel, handle), one.events->fd()});
  });
  objects.xrcds.ForEach([&](uint32_t, const Xrcd& one) {
    if (one.domain->file.valid())
      fds.push_back(
          {FdKind::kXrcFile, std::to_string(one.domain->id.value), one.domain->file.get()});
  });
  objects.regions.ForEach([&](uint32_t handle, const RemappedRegion& one) {
    // A session with memory of a device, which has none, is not handed over.
    if (one.memory != nullptr)
      fds.push_back({FdKind::kRegion, FdName(id, handle), one.memory->fd()});
  });
}

}  // namespace rocegw::session
