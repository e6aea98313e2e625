// SPDX-License-Identifier: Apache-2.0
// Registration of GPUs' memory. CUDA may keep its caller waiting, so the session's call queue opens
// and closes buffers.
#include <cerrno>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>

#include "gateway/session/client_session.h"
#include "gateway/session/commands/commands.h"

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

struct Opening {
  device_memory::CuUuid device;
  DeviceBuffer::Place place;
  StatusOr<std::shared_ptr<DeviceBuffer>> opened{Status(EIO, "not opened")};
};

void Add(ClientSession& session, std::shared_ptr<RemappedRegion> region) {
  const auto buffer = region->device;
  session.UseDevice(buffer, [&session, region = std::move(region)](int error) {
    if (error != 0) return session.ReplyError(error);
    session.ReplyObject(
        session.objects().regions.Add(std::make_unique<RemappedRegion>(std::move(*region))), 0);
  });
}

}  // namespace

void ImportDevice(ClientSession& session, Request& request) {
  const auto asked = request.As<rocegw_import_device>();
  // CUDA does not say whose allocation a handle names, and handles can be guessed: in a pool whose
  // programs do not trust each other, one could name another's memory.
  if (!session.trusted()) return session.ReplyError(EPERM);
  // The threads of a gateway in the program's own process have no descriptors of CUDA.
  const bool here = session.options().memory_way == MemoryWay::kOwn;
  if (here || asked.kind != ROCEGW_DEVICE_CUDA) return session.ReplyError(EOPNOTSUPP);
  if (asked.length == 0 || asked.length > std::numeric_limits<uint64_t>::max() - asked.address) {
    return session.ReplyError(EINVAL);
  }
  auto region = std::make_shared<RemappedRegion>();
  const bool taken =
      TakeRegion(session, *region,
                 {{{Resource::kRegisteredBytes, 0},
                   {Resource::kRemappedBytes, 0},
                   {Resource::kDescriptors, kDescriptorsOfDevice},
                   {Resource::kHeapBytes, kHeapOfRegion + device_memory::kStagingBytes}}});
  if (!taken) return;
  auto opening = std::make_shared<Opening>();
  std::memcpy(&opening->device, asked.device, sizeof asked.device);
  std::memcpy(&opening->place.handle, asked.handle, sizeof asked.handle);
  opening->place.address = asked.address;
  opening->place.length = asked.length;
  session.RunBlocking(
      [opening, devices = session.memory().devices(), call_queue = session.call_queue()] {
        opening->opened = devices->Open(opening->device, opening->place);
        if (opening->opened.ok()) opening->opened = EndsOn(call_queue, *opening->opened);
      },
      [&session, opening, region = std::move(region)] {
        if (!opening->opened.ok()) {
          const Status refused = opening->opened.status();
          session.reports().Say(Severity::kWarning, refused.text());
          return session.ReplyError(refused.error());
        }
        region->device = *opening->opened;
        Add(session, region);
      });
}

}  // namespace rocegw::session
