// SPDX-License-Identifier: Apache-2.0
// Commands on protection domains, memory regions, and remapped regions.
#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <memory>
#include <tuple>
#include <utility>

#include "gateway/session/client_session.h"
#include "gateway/session/commands/commands.h"
#include "gateway/session/commands/link_configs.h"

namespace rocegw::session {
namespace {

// Flags of enum ibv_access_flags that the data path ignores. Accepted because they hold anyway:
// pages are never pinned, and the library handles addresses.
constexpr uint32_t kAccessOnDemand = 1u << 6;
constexpr uint32_t kAccessHugetlb = 1u << 7;
// Bits that a provider may ignore (IBV_ACCESS_OPTIONAL_RANGE).
constexpr uint32_t kAccessOptional = 0x3FF00000;

bool AccessIsValid(uint32_t access, bool placement) {
  constexpr uint32_t kKnown = kDataPathAccess | verbs::kAccessMwBind | verbs::kAccessZeroBased |
                              kAccessOnDemand | kAccessHugetlb | kAccessOptional;
  if ((access & ~kKnown) != 0) return false;
  if (!placement && (access & verbs::kAccessFlushGlobal) != 0) return false;
  // Remote write access requires local write access (IBTA 10.6.3.2).
  const bool remote_change =
      (access & (verbs::kAccessRemoteWrite | verbs::kAccessRemoteAtomic)) != 0;
  return !remote_change || (access & verbs::kAccessLocalWrite) != 0;
}

// Requested properties of a region.
struct Wish {
  template <typename Message>
  explicit Wish(const Message& asked)
      : pd(asked.pd),
        access(asked.access),
        address(asked.address),
        length(asked.length),
        iova(asked.iova),
        region(asked.region),
        kept(asked.kept),
        region_offset(asked.region_offset) {}

  // Returns true for an implicit on-demand region: all present and future mappings of the program.
  bool IsImplicit() const {
    return (access & kAccessOnDemand) != 0 && address == 0 && iova == 0 &&
           length == Mr::kEverything;
  }

  uint32_t pd;
  uint32_t access;
  uint64_t address;
  uint64_t length;
  uint64_t iova;
  uint32_t region;
  uint32_t kept;
  uint64_t region_offset;
};

bool FitsAddressSpace(uint64_t start, uint64_t length) {
  return length <= std::numeric_limits<uint64_t>::max() - start;
}

bool IsDmaBuf(const memory::Region& memory) { return !memory.exporter().empty(); }

// Location of a requested region, and its cost.
struct Place {
  Pd* pd = nullptr;
  RemappedRegion* region = nullptr;
  DirectPart direct;
  uint64_t charged = 0;
};

// Returns 0, or why the region is impossible.
int Find(ClientSession& session, const Wish& wish, Place& place) {
  Objects& objects = session.objects();
  const Options& options = session.options();
  place.pd = objects.pds.Find(wish.pd);
  if (place.pd == nullptr || wish.length == 0 ||
      (wish.length > options.device.max_mr_size && !wish.IsImplicit()) ||
      !AccessIsValid(wish.access, session.rules().HasPlacement(session.pool())) ||
      !FitsAddressSpace(wish.address, wish.length) || !FitsAddressSpace(wish.iova, wish.length)) {
    return EINVAL;
  }
  if (wish.region != 0) {
    place.region = objects.regions.Find(wish.region);
    if (place.region == nullptr) return EINVAL;
    if (const auto& device = place.region->device) {
      place.charged = wish.length;
      const bool inside = device->Holds(wish.address, wish.length) &&
                          wish.address - device->address() == wish.region_offset &&
                          (wish.access & verbs::kAccessMwBind) == 0;
      return inside ? 0 : EINVAL;
    }
    const memory::Region& memory = *place.region->memory;
    place.direct = Intersect(memory, wish.address, wish.length);
    if (place.direct.length == 0 || wish.address - memory.address() != wish.region_offset)
      return EINVAL;
    // Mappings of devices cannot be reached by cross-process copies.
    if (IsDmaBuf(memory) && place.direct.length != wish.length) return EINVAL;
  }
  if (place.direct.length != wish.length && !session.memory().reachable()) return EPERM;
  // The limit counts explicitly registered bytes. A region of moved pages was charged for its bytes
  // when it was created.
  const bool charged_before = place.region != nullptr && !IsDmaBuf(*place.region->memory);
  const uint64_t before = charged_before ? place.direct.length : 0;
  place.charged = wish.IsImplicit() ? 0 : wish.length - before;
  return 0;
}

// Applies the request to the region; its key stays.
void Adopt(const Wish& wish, const Place& place, Mr& mr) {
  mr.context = place.pd->context;
  mr.pd = wish.pd;
  mr.address = wish.address;
  mr.length = wish.length;
  mr.iova = wish.iova;
  mr.access = wish.access;
  mr.charged = place.charged;
  mr.region = wish.region;
  mr.kept = wish.kept;
  mr.windows =
      (wish.access & verbs::kAccessMwBind) != 0 ? std::make_unique<verbs::BoundWindows>() : nullptr;
  ++place.pd->users;
  if (place.region != nullptr) ++place.region->users;
}

rocegw_mr_reply ReplyFor(const ClientSession& session, const Place& place,
                         const verbs::RegionConfig& config) {
  rocegw_mr_reply reply{};
  reply.handle = config.mr_handle;
  reply.lkey = reply.rkey = config.key.value;
  reply.way = WayOf(session, place.region);
  return reply;
}

void DropMr(ClientSession& session, uint32_t handle, std::function<void()> done) {
  const MemoryKey key = session.objects().mrs.Find(handle)->key;
  session.workers().Broadcast(
      [&](WorkerIndex) {
        return worker::UnlinkRegion{session.id(), key};
      },
      [&session, handle, done = std::move(done)](const worker::ControlReply&) {
        session.release().FreeMr(handle);
        done();
      });
}

// Change of a region while the workers take it. All workers have the old region, all have the new
// one, or, if a worker refuses both, none has the region. Until Commit the session's row is the old
// region; both are counted as users of their objects.
class RegionChange : public std::enable_shared_from_this<RegionChange> {
 public:
  // `taken`: registered bytes that the new region was charged for besides those of the old one. The
  // old region admits no windows any more. The session outlives its pending request.
  RegionChange(ClientSession& session, uint32_t handle, Mr& mr, std::unique_ptr<Mr> next,
               uint64_t taken)
      : session_(session), handle_(handle), mr_(mr), next_(std::move(next)), taken_(taken) {}

  // Makes the new region the session's. No worker uses the old region or its windows any more.
  void Commit() {
    LetGo(mr_);
    session_.quota().Give(Resource::kRegisteredBytes, mr_.charged + taken_ - next_->charged);
    mr_ = std::move(*next_);
  }
  // Gives all workers the old region again and answers with `error`, the refusal of a worker.
  void Undo(int error) {
    // Workers that have the new region may have bound a window to it meanwhile.
    if (next_->windows != nullptr && !next_->windows->Close()) return Revoke();
    closed_ = std::move(mr_.windows);
    if (closed_ != nullptr) mr_.windows = std::make_unique<verbs::BoundWindows>();
    const verbs::RegionConfig config = RegionConfigOf(session_, handle_, mr_);
    session_.workers().Broadcast(
        [&](WorkerIndex) { return worker::RelinkRegion{config}; },
        [self = shared_from_this(), error](const worker::ControlReply& relinked) {
          if (relinked.error != 0) return self->Revoke();
          self->LetGo(*self->next_);
          self->session_.quota().Give(Resource::kRegisteredBytes, self->taken_);
          self->session_.exchange().Error(error);
        });
  }

 private:
  // Takes the region from all workers. Its key is the program's until it destroys the region.
  void Revoke() {
    session_.workers().Broadcast(
        [&](WorkerIndex) {
          return worker::UnlinkRegion{session_.id(), mr_.key};
        },
        [self = shared_from_this()](const worker::ControlReply&) {
          self->Commit();
          self->mr_.revoked = true;
          self->session_.exchange().Error(EIO);
        });
  }
  void LetGo(const Mr& mr) {
    Objects& objects = session_.objects();
    --objects.pds.Find(mr.pd)->users;
    if (RemappedRegion* const region = objects.regions.Find(mr.region)) --region->users;
  }

  ClientSession& session_;
  const uint32_t handle_;
  Mr& mr_;
  std::unique_ptr<Mr> next_;
  std::unique_ptr<verbs::BoundWindows> closed_;  // the old region's, while workers may use it
  const uint64_t taken_;
};

// Maps a dma-buf, which can take long for a large one, and answers.
void MapDmaBuf(ClientSession& session, const rocegw_import_region& asked,
               const std::shared_ptr<RemappedRegion>& region, UniqueFd descriptor) {
  struct Import {
    UniqueFd descriptor;
    StatusOr<std::shared_ptr<memory::Region>> memory{Status(EIO, "not inspected")};
  };
  auto import = std::make_shared<Import>();
  import->descriptor = std::move(descriptor);
  session.exchange().RunBlocking(
      [import, asked, inspect = session.options().inspect_dma_buf] {
        auto buffer = inspect(import->descriptor.get());
        import->memory = !buffer.ok()
                             ? buffer.status()
                             : memory::Region::Import(std::move(import->descriptor), *buffer,
                                                      asked.address, asked.length);
      },
      [&session, import, region] {
        if (!import->memory.ok()) return session.exchange().Error(import->memory.status().error());
        region->memory = *import->memory;
        const uint32_t handle =
            session.objects().regions.Add(std::make_unique<RemappedRegion>(std::move(*region)));
        session.memory().AddRegion(handle, *import->memory);
        session.exchange().Object(handle, 0);
      });
}

}  // namespace

bool TakeRegion(ClientSession& session, RemappedRegion& region, const RegionCosts& costs) {
  static_assert(std::tuple_size_v<RegionCosts> ==
                std::tuple_size_v<decltype(RemappedRegion::charges)>);
  const uint32_t most = session.options().session.event_channels;
  if (session.objects().regions.size() >= most) {
    session.ReplyBound("remapped regions", most);
    return false;
  }
  for (size_t i = 0; i < costs.size(); ++i) {
    const int error = session.quota().Take(costs[i].first, costs[i].second, region.charges[i]);
    if (error == 0) continue;
    session.exchange().Error(error);
    return false;
  }
  return true;
}

void AllocPd(ClientSession& session, Request& request) {
  const uint32_t context = request.As<rocegw_alloc_pd>().context;
  if (session.objects().contexts.Find(context) == nullptr) return session.exchange().Error(EINVAL);
  if (const int error = session.quota().Take(Resource::kPds))
    return session.exchange().Error(error);
  auto pd = std::make_unique<Pd>();
  pd->context = context;
  session.exchange().Object(session.objects().pds.Add(std::move(pd)), 0);
}

void DeallocPd(ClientSession& session, Request& request) {
  const uint32_t handle = request.As<rocegw_object_request>().handle;
  const Pd* const pd = session.objects().pds.Find(handle);
  if (pd == nullptr) return session.exchange().Error(EINVAL);
  if (pd->users != 0) return session.exchange().Error(EBUSY);
  session.release().FreePd(handle);
  session.exchange().Done();
}

void RegMr(ClientSession& session, Request& request) {
  const Wish wish(request.As<rocegw_reg_mr>());
  Objects& objects = session.objects();
  Place place;
  if (const int error = Find(session, wish, place)) return session.exchange().Error(error);
  if (const int error = session.quota().Take(Resource::kMrs))
    return session.exchange().Error(error);
  if (const int error = session.quota().Take(Resource::kRegisteredBytes, place.charged)) {
    session.quota().Give(Resource::kMrs);
    return session.exchange().Error(error);
  }
  auto added = std::make_unique<Mr>();
  Mr& mr = *added;
  mr.key = session.keys().Take();
  Adopt(wish, place, mr);
  const uint32_t handle = objects.mrs.Add(std::move(added));
  const verbs::RegionConfig config = RegionConfigOf(session, handle, mr);
  const rocegw_mr_reply reply = ReplyFor(session, place, config);
  session.workers().Broadcast([&](WorkerIndex) { return worker::LinkRegion{config}; },
                              [&session, handle, reply](const worker::ControlReply& linked) {
                                if (linked.error == 0) return session.exchange().Reply(reply);
                                DropMr(session, handle, [&session, error = linked.error] {
                                  session.exchange().Error(error);
                                });
                              });
}

void ReregMr(ClientSession& session, Request& request) {
  const auto asked = request.As<rocegw_rereg_mr>();
  const Wish wish(asked);
  Mr* const mr = session.objects().mrs.Find(asked.mr);
  if (mr == nullptr) return session.exchange().Error(EINVAL);
  if (mr->revoked) return session.exchange().Error(EIO);
  Place place;
  if (const int error = Find(session, wish, place)) return session.exchange().Error(error);
  if (place.pd->context != mr->context) return session.exchange().Error(EINVAL);
  const uint64_t more = place.charged > mr->charged ? place.charged - mr->charged : 0;
  if (const int error = session.quota().Take(Resource::kRegisteredBytes, more))
    return session.exchange().Error(error);
  if (mr->windows != nullptr && !mr->windows->Close()) {
    session.quota().Give(Resource::kRegisteredBytes, more);
    return session.exchange().Error(EBUSY);
  }
  auto next = std::make_unique<Mr>();
  next->key = mr->key;
  Adopt(wish, place, *next);
  const verbs::RegionConfig config = RegionConfigOf(session, asked.mr, *next);
  const auto change = std::make_shared<RegionChange>(session, asked.mr, *mr, std::move(next), more);
  session.workers().Broadcast([&](WorkerIndex) { return worker::RelinkRegion{config}; },
                              [&session, change, reply = ReplyFor(session, place, config)](
                                  const worker::ControlReply& relinked) {
                                if (relinked.error != 0) return change->Undo(relinked.error);
                                change->Commit();
                                session.exchange().Reply(reply);
                              });
}

void DeregMr(ClientSession& session, Request& request) {
  const uint32_t handle = request.As<rocegw_object_request>().handle;
  const Mr* const mr = session.objects().mrs.Find(handle);
  if (mr == nullptr) return session.exchange().Error(EINVAL);
  if (mr->windows != nullptr && !mr->windows->Close()) return session.exchange().Error(EBUSY);
  DropMr(session, handle, [&session] { session.exchange().Done(); });
}

void CreateRegion(ClientSession& session, Request& request) {
  const auto asked = request.As<rocegw_create_region>();
  if (!session.pool().settings().remap_allowed) return session.exchange().Error(EPERM);
  auto region = std::make_unique<RemappedRegion>();
  const bool taken = TakeRegion(session, *region,
                                {{{Resource::kRegisteredBytes, asked.length},
                                  {Resource::kRemappedBytes, asked.length},
                                  {Resource::kDescriptors, kDescriptorsOfPart},
                                  {Resource::kHeapBytes, kHeapOfRegion}}});
  if (!taken) return;
  auto memory = memory::Region::Create(asked.address, asked.length);
  if (!memory.ok()) return session.exchange().Error(memory.status().error());
  region->memory = *memory;
  const uint32_t handle = session.objects().regions.Add(std::move(region));
  session.memory().AddRegion(handle, *memory);
  session.exchange().Object(handle, 0, (*memory)->fd());
}

void ImportRegion(ClientSession& session, Request& request) {
  const auto asked = request.As<rocegw_import_region>();
  auto region = std::make_shared<RemappedRegion>();
  const bool taken = TakeRegion(
      session, *region,
      {{{Resource::kRegisteredBytes, 0},
        {Resource::kRemappedBytes, 0},
        {Resource::kDescriptors, kDescriptorsOfPart},
        {Resource::kHeapBytes, kHeapOfRegion + asked.length / kBytesPerByteOfPageTables}}});
  if (!taken) return;
  session.exchange().TakeDescriptor(request, {PassedKind::kDmaBuf},
                                    [&session, asked, region](PassedDescriptor passed) {
                                      if (!passed.status.ok())
                                        return session.exchange().Error(passed.status.error());
                                      MapDmaBuf(session, asked, region, std::move(passed.fd));
                                    });
}

void DestroyRegion(ClientSession& session, Request& request) {
  const uint32_t handle = request.As<rocegw_object_request>().handle;
  const RemappedRegion* const region = session.objects().regions.Find(handle);
  if (region == nullptr) return session.exchange().Error(EINVAL);
  if (region->users != 0) return session.exchange().Error(EBUSY);
  session.release().FreeRegion(handle);
  session.exchange().Done();
}

}  // namespace rocegw::session
