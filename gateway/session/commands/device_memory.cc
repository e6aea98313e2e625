// SPDX-License-Identifier: Apache-2.0
// Registration of GPUs' memory. CUDA may keep its caller waiting, so the session's call queue opens
// and closes buffers.
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "gateway/session/client_session.h"
#include "gateway/session/commands/commands.h"
#include "gateway/session/objects/session_costs.h"

namespace rocegw::session {
namespace {

using device_memory::DeviceBuffer;

// Returns a pointer whose last owner, on whichever thread, leaves the end of the buffer to the call
// queue.
std::shared_ptr<DeviceBuffer> EndsOn(const std::shared_ptr<ClientCallQueue>& call_queue,
                                     std::shared_ptr<DeviceBuffer> buffer) {
  DeviceBuffer* const bare = buffer.get();
  return {bare, [call_queue, buffer = std::move(buffer)](DeviceBuffer*) mutable {
            call_queue->Run([owned = std::exchange(buffer, nullptr)] {});
          }};
}

using Place = DeviceBuffer::Place;

// Kind of a request; nothing: it is not known.
struct Kind {
  device_memory::DriverKind driver;
  Place::By by;
};
std::optional<Kind> KindOf(uint32_t kind) {
  using device_memory::DriverKind;
  switch (kind) {
    case ROCEGW_DEVICE_CUDA:
      return Kind{DriverKind::kCuda, Place::By::kHandle};
    case ROCEGW_DEVICE_HIP:
      return Kind{DriverKind::kHip, Place::By::kHandle};
    case ROCEGW_DEVICE_CUDA_DESCRIPTOR:
      return Kind{DriverKind::kCuda, Place::By::kDescriptor};
    case ROCEGW_DEVICE_HIP_DESCRIPTOR:
      return Kind{DriverKind::kHip, Place::By::kDescriptor};
    default:
      return std::nullopt;
  }
}

void Add(ClientSession& session, std::shared_ptr<RemappedRegion> region) {
  const auto buffer = region->device;
  session.UseDevice(buffer, [&session, region = std::move(region)](int error) {
    if (error != 0) return session.exchange().Error(error);
    session.exchange().Object(
        session.objects().regions.Add(std::make_unique<RemappedRegion>(std::move(*region))), 0);
  });
}

void Open(ClientSession& session, device_memory::OpenDevices::Wish wish,
          std::shared_ptr<RemappedRegion> region) {
  auto opened =
      std::make_shared<StatusOr<std::shared_ptr<DeviceBuffer>>>(Status(EIO, "not opened"));
  session.exchange().RunBlocking(
      [opened, wish = std::move(wish), devices = session.memory().devices(),
       call_queue = session.exchange().call_queue()] {
        *opened = devices->Open(wish);
        if (opened->ok()) *opened = EndsOn(call_queue, **opened);
      },
      [&session, opened, region = std::move(region)] {
        if (!opened->ok()) {
          const Status refused = opened->status();
          session.reports().Say(Severity::kWarning, refused.text());
          return session.exchange().Error(refused.error());
        }
        region->device = **opened;
        Add(session, region);
      });
}

// Takes the costs of an engine, which the opening may need. Returns false with an answer.
bool TakeDevice(ClientSession& session, DeviceCharges& charges) {
  const std::array<std::pair<Resource, uint64_t>, 2> costs{
      {{Resource::kDescriptors, kDescriptorsOfDevice},
       {Resource::kHeapBytes, kHeapOfDeviceContext + device_memory::kStagingBytes}}};
  for (size_t i = 0; i < costs.size(); ++i) {
    if (const int error = session.quota().Take(costs[i].first, costs[i].second, charges[i])) {
      session.exchange().Error(error);
      return false;
    }
  }
  return true;
}

}  // namespace

void ImportDevice(ClientSession& session, Request& request) {
  const auto asked = request.As<rocegw_import_device>();
  std::optional<Kind> kind = KindOf(asked.kind);
  if (!kind) return session.exchange().Error(EOPNOTSUPP);
  // In a program's own process there is nothing to hand over.
  if (session.options().memory_way == MemoryWay::kOwn) kind->by = Place::By::kOwnAddress;
  // The drivers do not say whose allocation a handle names, and handles can be guessed: in a pool
  // whose programs do not trust each other, one could name another's memory. A descriptor is proof.
  if (!session.trusted() && kind->by == Place::By::kHandle) return session.exchange().Error(EPERM);
  if (asked.length == 0 || asked.length > std::numeric_limits<uint64_t>::max() - asked.address) {
    return session.exchange().Error(EINVAL);
  }
  auto region = std::make_shared<RemappedRegion>();
  const bool with_descriptor = kind->by == Place::By::kDescriptor;
  DeviceCharges charges;
  const bool taken =
      TakeRegion(session, *region,
                 {{{Resource::kRegisteredBytes, 0},
                   {Resource::kRemappedBytes, 0},
                   {Resource::kDescriptors, with_descriptor ? kDescriptorsOfPart : 0},
                   {Resource::kHeapBytes, kHeapOfRegion}}}) &&
      TakeDevice(session, charges);
  if (!taken) return;
  device_memory::OpenDevices::Wish wish{.kind = kind->driver};
  std::memcpy(&wish.device, asked.device, sizeof asked.device);
  std::memcpy(&wish.place.handle, asked.handle, sizeof asked.handle);
  wish.place.by = kind->by;
  wish.place.address = asked.address;
  wish.place.length = asked.length;
  wish.costs = session.memory().KeepDevice(std::move(charges));
  if (!with_descriptor) return Open(session, std::move(wish), std::move(region));
  session.exchange().TakeDescriptor(
      request, {PassedKind::kDeviceMemory},
      [&session, wish = std::move(wish), region](PassedDescriptor passed) mutable {
        if (!passed.status.ok()) return session.exchange().Error(passed.status.error());
        wish.place.descriptor = std::make_shared<UniqueFd>(std::move(passed.fd));
        Open(session, std::move(wish), region);
      });
}

}  // namespace rocegw::session
