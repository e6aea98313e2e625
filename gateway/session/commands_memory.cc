// SPDX-License-Identifier: Apache-2.0
// Protection domains, memory regions, and regions whose pages move (remapping).
#include <algorithm>
#include <cerrno>
#include <limits>

#include "gateway/session/client_session.h"
#include "gateway/session/commands.h"

namespace rocegw::session {
namespace {

// enum ibv_access_flags beyond those that the data path looks at. Accepted because they ask for
// nothing that is not so anyway: pages are never pinned, addresses are the library's business.
constexpr uint32_t kAccessOnDemand = 1u << 6;
constexpr uint32_t kAccessHugetlb = 1u << 7;
// Bits that a provider may ignore (IBV_ACCESS_OPTIONAL_RANGE).
constexpr uint32_t kAccessOptional = 0x3FF00000;

constexpr uint32_t kDataPathAccess = verbs::kAccessLocalWrite | verbs::kAccessRemoteWrite |
                                     verbs::kAccessRemoteRead | verbs::kAccessRemoteAtomic |
                                     verbs::kAccessFlushGlobal;

bool AccessIsValid(uint32_t access, bool placement) {
  constexpr uint32_t kKnown = kDataPathAccess | verbs::kAccessMwBind | verbs::kAccessZeroBased |
                              kAccessOnDemand | kAccessHugetlb | kAccessOptional;
  if ((access & ~kKnown) != 0) return false;
  if (!placement && (access & verbs::kAccessFlushGlobal) != 0) return false;
  // Who may write from afar may write here (IBTA 10.6.3.2).
  const bool remote_change =
      (access & (verbs::kAccessRemoteWrite | verbs::kAccessRemoteAtomic)) != 0;
  return !remote_change || (access & verbs::kAccessLocalWrite) != 0;
}

// Everything that the program has and will have mapped: an implicit on-demand region.
bool IsImplicit(const rocegw_reg_mr& asked) {
  return (asked.access & kAccessOnDemand) != 0 && asked.address == 0 && asked.iova == 0 &&
         asked.length == Mr::kEverything;
}

bool FitsAddressSpace(uint64_t start, uint64_t length) {
  return length <= std::numeric_limits<uint64_t>::max() - start;
}

// The part of a registration that lies in a remapped region.
struct DirectPart {
  uint8_t* bytes = nullptr;
  uint64_t from = 0;  // in the registration
  uint64_t length = 0;
};

// The ends of both ranges fit the address space.
DirectPart Intersect(const memory::Region& region, uint64_t address, uint64_t length) {
  const uint64_t begin = std::max(address, region.address());
  const uint64_t end = std::min(address + length, region.address() + region.length());
  if (begin >= end) return {};
  return {region.Find(begin, end - begin), begin - address, end - begin};
}

void DropMr(ClientSession& session, uint32_t handle, std::function<void()> done) {
  const MemoryKey key = session.objects().mrs.Find(handle)->key;
  session.services().workers.Broadcast(
      [&](WorkerIndex) {
        return worker::UnlinkRegion{session.id(), key};
      },
      [&session, handle, done = std::move(done)](const worker::ControlReply&) {
        session.FreeMr(handle);
        done();
      });
}

}  // namespace

void AllocPd(ClientSession& session, Request& request) {
  const uint32_t context = request.As<rocegw_alloc_pd>().context;
  if (session.objects().contexts.Find(context) == nullptr) return session.ReplyError(EINVAL);
  if (const int error = session.Take(Resource::kPds)) return session.ReplyError(error);
  auto pd = std::make_unique<Pd>();
  pd->context = context;
  session.ReplyObject(session.objects().pds.Add(std::move(pd)), 0);
}

void DeallocPd(ClientSession& session, Request& request) {
  const uint32_t handle = request.As<rocegw_object_request>().handle;
  const Pd* const pd = session.objects().pds.Find(handle);
  if (pd == nullptr) return session.ReplyError(EINVAL);
  if (pd->users != 0) return session.ReplyError(EBUSY);
  session.FreePd(handle);
  session.ReplyDone();
}

void RegMr(ClientSession& session, Request& request) {
  const auto asked = request.As<rocegw_reg_mr>();
  Objects& objects = session.objects();
  Services& services = session.services();
  Pd* const pd = objects.pds.Find(asked.pd);
  const bool implicit = IsImplicit(asked);
  if (pd == nullptr || asked.length == 0 ||
      (asked.length > services.options.device.max_mr_size && !implicit) ||
      !AccessIsValid(asked.access, services.options.placement) ||
      !FitsAddressSpace(asked.address, asked.length) ||
      !FitsAddressSpace(asked.iova, asked.length)) {
    return session.ReplyError(EINVAL);
  }
  DirectPart direct;
  RemappedRegion* region = nullptr;
  if (asked.region != 0) {
    region = objects.regions.Find(asked.region);
    if (region == nullptr) return session.ReplyError(EINVAL);
    direct = Intersect(*region->memory, asked.address, asked.length);
    if (direct.length == 0 || asked.address - region->memory->address() != asked.region_offset) {
      return session.ReplyError(EINVAL);
    }
  }
  if (direct.length != asked.length && !session.memory_reachable()) {
    return session.ReplyError(EPERM);
  }
  // A limit counts what is registered by name.
  const uint64_t charged = implicit ? 0 : asked.length - direct.length;
  if (const int error = session.Take(Resource::kMrs)) return session.ReplyError(error);
  if (const int error = session.Take(Resource::kRegisteredBytes, charged)) {
    session.Give(Resource::kMrs);
    return session.ReplyError(error);
  }
  auto mr = std::make_unique<Mr>();
  mr->context = pd->context;
  mr->pd = asked.pd;
  mr->key = services.keys.Take();
  mr->address = asked.address;
  mr->length = asked.length;
  mr->access = asked.access;
  mr->charged = charged;
  mr->region = asked.region;
  mr->kept = asked.kept;
  if ((asked.access & verbs::kAccessMwBind) != 0)
    mr->windows = std::make_unique<verbs::BoundWindows>();
  ++pd->users;
  if (region != nullptr) ++region->users;

  verbs::RegionConfig config;
  config.key = mr->key;
  config.session = session.id();
  config.pd = asked.pd;
  config.access = asked.access & kDataPathAccess;
  config.iova = asked.iova;
  config.length = asked.length;
  config.address = asked.address;
  config.direct = direct.bytes;
  config.direct_from = direct.from;
  config.direct_length = direct.length;
  config.windows = mr->windows.get();
  const uint32_t handle = objects.mrs.Add(std::move(mr));
  config.mr_handle = handle;

  rocegw_mr_reply reply{};
  reply.handle = handle;
  reply.lkey = reply.rkey = config.key.value;
  reply.way = direct.length != 0 ? ROCEGW_MEMORY_REMAPPED : session.memory_way();
  services.workers.Broadcast(
      [&](WorkerIndex) { return worker::LinkRegion{config}; },
      [&session, handle, reply](const worker::ControlReply& linked) {
        if (linked.error == 0) return session.Reply(reply);
        DropMr(session, handle, [&session, error = linked.error] { session.ReplyError(error); });
      });
}

void DeregMr(ClientSession& session, Request& request) {
  const uint32_t handle = request.As<rocegw_object_request>().handle;
  const Mr* const mr = session.objects().mrs.Find(handle);
  if (mr == nullptr) return session.ReplyError(EINVAL);
  if (mr->windows != nullptr && !mr->windows->Close()) return session.ReplyError(EBUSY);
  DropMr(session, handle, [&session] { session.ReplyDone(); });
}

void CreateRegion(ClientSession& session, Request& request) {
  const auto asked = request.As<rocegw_create_region>();
  Services& services = session.services();
  if (!session.pool().settings().remap_allowed) return session.ReplyError(EPERM);
  if (session.objects().regions.size() >= services.options.session.event_channels) {
    return session.ReplyError(ENOMEM);
  }
  if (const int error = session.Take(Resource::kRegisteredBytes, asked.length))
    return session.ReplyError(error);
  auto memory = memory::Region::Create(asked.address, asked.length);
  if (!memory.ok()) {
    session.Give(Resource::kRegisteredBytes, asked.length);
    return session.ReplyError(memory.status().error());
  }
  auto region = std::make_unique<RemappedRegion>();
  region->memory = *memory;
  const uint32_t handle = session.objects().regions.Add(std::move(region));
  session.AddRegion(handle, *memory);
  session.ReplyObject(handle, 0, (*memory)->fd());
}

void DestroyRegion(ClientSession& session, Request& request) {
  const uint32_t handle = request.As<rocegw_object_request>().handle;
  const RemappedRegion* const region = session.objects().regions.Find(handle);
  if (region == nullptr) return session.ReplyError(EINVAL);
  if (region->users != 0) return session.ReplyError(EBUSY);
  session.FreeRegion(handle);
  session.ReplyDone();
}

}  // namespace rocegw::session
