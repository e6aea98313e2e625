// SPDX-License-Identifier: Apache-2.0
// Commands for the greeting, devices, contexts and completion channels.
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <string>

#include "gateway/abi/greeting.h"
#include "gateway/session/client_session.h"
#include "gateway/session/commands/commands.h"
#include "gateway/session/link_rate.h"

namespace rocegw::session {
namespace {

constexpr uint16_t kGidTableLength = verbs::GidTable::kSize;
constexpr uint8_t kMtu4096 = 5;     // enum ibv_mtu
constexpr uint8_t kPortActive = 4;  // enum ibv_port_state
constexpr uint8_t kPortDown = 1;
constexpr uint8_t kAckDelay =
    15;  // 4.096 us * 2^15 = 134 ms: a software responder may wait for a core

template <size_t N>
void CopyText(char (&to)[N], const std::string& from) {
  std::memcpy(to, from.data(), std::min(from.size(), N - 1));
}

uint32_t Narrow(uint64_t value) {
  return static_cast<uint32_t>(std::min<uint64_t>(value, std::numeric_limits<int32_t>::max()));
}

const Device* FindDevice(ClientSession& session, uint32_t index) {
  const auto& devices = session.devices().SeenBy(session.pool());
  return index < devices.size() ? &devices[index] : nullptr;
}

// Returns the text if it is plain; a program may send any bytes there.
std::string PlainText(std::span<const char> text) {
  std::string plain;
  for (const char letter : text) {
    if (letter == '\0') break;
    plain += letter > ' ' && letter <= '~' ? letter : '?';
  }
  return plain;
}

void TellOwnPreload(ClientSession& session, const rocegw_hello& hello) {
  const std::string own = PlainText(hello.own_preload);
  if (own.empty()) return;
  const Peer& peer = session.peer();
  session.reports().Tell(
      "OWN_PRELOAD", session.pool().name(), peer.comm,
      session.pool().name() + ": " + peer.comm + " (pid " + std::to_string(peer.pid) +
          ") has an LD_PRELOAD of its container's own, with " + own +
          " besides the library that the container was given; calls that both replace go to the "
          "one that is named first");
}

void Welcome(ClientSession& session, const rocegw_hello& hello, UniqueFd memory) {
  session.memory().SetUp(std::move(memory));
  if ((hello.flags & ROCEGW_HELLO_DEVICES) != 0) session.memory().ExpectDevices();
  session.Greeted(hello.minor);
  TellOwnPreload(session, hello);
  const Options& options = session.options();
  rocegw_hello_reply reply{};
  reply.major = ROCEGW_ABI_MAJOR;
  reply.minor = ROCEGW_ABI_MINOR;
  reply.session = session.id().value;
  reply.worker_count = static_cast<uint32_t>(session.workers().worker_count());
  reply.device_count = static_cast<uint32_t>(session.devices().size());
  CopyText(reply.sysfs_root, options.sysfs_root);
  // A client may not create a full userfaultfd itself, but through this descriptor it may
  // (userfaultfd(2)).
  UniqueFd userfaultfd;
  if (session.pool().settings().remap_allowed) {
    reply.flags |= ROCEGW_WELCOME_REMAP;
    userfaultfd.Reset(::open("/dev/userfaultfd", O_RDWR | O_CLOEXEC));
  }
  session.exchange().Reply(reply, userfaultfd.get());
}

// Takes the descriptor of the program's memory. In the program's own process it is ignored.
void TakeMemory(ClientSession& session, Request& request,
                std::function<void(PassedDescriptor memory)> done) {
  const bool ignored = session.options().memory_way == MemoryWay::kOwn;
  session.exchange().TakeDescriptor(request, {PassedKind::kProcessMemory},
                                    [ignored, done = std::move(done)](PassedDescriptor memory) {
                                      done(ignored ? PassedDescriptor{} : std::move(memory));
                                    });
}

}  // namespace

void Hello(ClientSession& session, Request& request) {
  const auto hello = request.As<rocegw_hello>();
  if (hello.magic != ROCEGW_ABI_MAGIC)
    return session.exchange().Violation("greeting of another protocol");
  if (hello.major != ROCEGW_ABI_MAJOR) {
    session.pool().CountAttach(tenant::AttachOutcome::kFailed);
    session.exchange().Error(EPROTONOSUPPORT);
    return session.End("library speaks version " + std::to_string(hello.major) +
                       " of the attach protocol, this daemon " + std::to_string(ROCEGW_ABI_MAJOR));
  }
  if (request.passing < 0) return Welcome(session, hello, UniqueFd());
  TakeMemory(session, request, [&session, hello](PassedDescriptor memory) {
    if (memory.status.ok()) return Welcome(session, hello, std::move(memory.fd));
    session.pool().CountAttach(tenant::AttachOutcome::kFailed);
    session.exchange().Error(memory.status.error());
    session.End(memory.status.text());
  });
}

void SetMemory(ClientSession& session, Request& request) {
  TakeMemory(session, request, [&session](PassedDescriptor memory) {
    if (!memory.status.ok()) return session.exchange().Error(memory.status.error());
    session.exchange().Answer(session.memory().Replace(std::move(memory.fd)).error());
  });
}

void QueryDevice(ClientSession& session, Request& request) {
  const Device* const device = FindDevice(session, request.As<rocegw_query_device>().device);
  if (device == nullptr) return session.exchange().Error(ENODEV);
  const Options& options = session.options();
  const tenant::Pool& pool = session.pool();
  rocegw_device_reply reply{};
  CopyText(reply.name, device->name);
  CopyText(reply.interface, device->interface);
  CopyText(reply.firmware, options.version);
  reply.node_guid = device->node_guid;
  reply.max_mr_size = options.device.max_mr_size;
  reply.interface_index = device->interface_index;
  reply.vendor_id = kVendorId;
  reply.vendor_part_id = kVendorPartId;
  reply.hardware_version = 1;
  reply.max_qp = Narrow(session.quota().Peak(Resource::kQps));
  reply.max_qp_wr = options.device.max_qp_wr;
  reply.max_sge = options.device.max_sge;
  reply.max_inline = options.device.max_inline;
  reply.max_cq = Narrow(pool.Peak(Resource::kCqs));
  reply.max_cqe = options.device.max_cqe;
  reply.max_mr = Narrow(pool.Peak(Resource::kMrs));
  reply.max_pd = Narrow(pool.Peak(Resource::kPds));
  reply.max_ah = Narrow(pool.Peak(Resource::kAhs));
  reply.max_srq = Narrow(pool.Peak(Resource::kSrqs));
  reply.max_srq_wr = options.device.max_qp_wr;
  reply.max_srq_sge = options.device.max_sge;
  reply.max_rd_atomic = options.device.max_rd_atomic;
  reply.max_message = options.device.max_message;
  reply.port_state = device->up ? kPortActive : kPortDown;
  reply.max_mtu = kMtu4096;
  reply.active_mtu = device->active_mtu;
  reply.local_ack_delay = kAckDelay;
  const LinkRate rate = RateOf(device->link_bytes_per_second);
  reply.active_width = rate.width;
  reply.active_speed = rate.speed;
  reply.gid_table_length = kGidTableLength;
  reply.max_multicast = options.device.max_multicast;
  reply.max_mw = reply.max_mr;
  reply.max_xrcd = reply.max_pd;
  if (session.rules().HasPlacement(session.pool())) reply.features |= ROCEGW_DEVICE_PLACEMENT;
  session.exchange().Reply(reply);
}

void QueryGids(ClientSession& session, Request& request) {
  const auto query = request.As<rocegw_query_gids>();
  const Device* const device = FindDevice(session, query.device);
  if (device == nullptr) return session.exchange().Error(ENODEV);
  rocegw_gids_reply reply{};
  for (size_t i = query.first; i < std::min<size_t>(device->gids.size(), kGidTableLength); ++i) {
    if (device->gids[i].IsZero()) continue;
    if (reply.count == ROCEGW_GIDS_PER_REPLY) {
      reply.more = 1;
      break;
    }
    rocegw_gid_entry& entry = reply.entry[reply.count++];
    std::memcpy(entry.gid, device->gids[i].bytes.data(), sizeof entry.gid);
    entry.index = static_cast<uint32_t>(i);
    entry.interface_index = device->interface_index;
  }
  session.exchange().Reply(reply);
}

void OpenContext(ClientSession& session, Request& request) {
  const uint32_t device = request.As<rocegw_open_context>().device;
  if (FindDevice(session, device) == nullptr) return session.exchange().Error(ENODEV);
  const uint32_t most = session.options().session.contexts;
  if (session.objects().contexts.size() >= most) return session.ReplyBound("open devices", most);
  session.LinkToWorkers([&session, device](int error) {
    if (error != 0) return session.exchange().Error(error);
    auto context = std::make_unique<Context>();
    auto pair = session.event_limits().NewPair(context->descriptors);
    if (!pair.ok()) return session.exchange().Error(pair.status().error());
    context->device = device;
    context->async_events = std::make_unique<EventChannel>(
        session.loop(), session.event_limits().backlog(), std::move(pair->ours));
    const uint32_t handle = session.objects().contexts.Add(std::move(context));
    session.exchange().Object(handle, 0, pair->client.get());
  });
}

void CloseContext(ClientSession& session, Request& request) {
  const uint32_t handle = request.As<rocegw_object_request>().handle;
  if (session.objects().contexts.Find(handle) == nullptr) return session.exchange().Error(EINVAL);
  session.release().CloseContext(handle, [&session] { session.exchange().Done(); });
}

void CreateCompletionChannel(ClientSession& session, Request& request) {
  const uint32_t context = request.As<rocegw_object_request>().handle;
  if (session.objects().contexts.Find(context) == nullptr) return session.exchange().Error(EINVAL);
  if (session.event_limits().full())
    return session.ReplyBound("event channels", session.event_limits().most_channels());
  auto channel = std::make_unique<CompletionChannel>();
  auto pair = session.event_limits().NewPair(channel->descriptors);
  if (!pair.ok()) return session.exchange().Error(pair.status().error());
  channel->context = context;
  channel->ours = std::move(pair->ours);
  const uint32_t handle = session.objects().channels.Add(std::move(channel));
  session.exchange().Object(handle, 0, pair->client.get());
}

void DestroyCompletionChannel(ClientSession& session, Request& request) {
  const uint32_t handle = request.As<rocegw_object_request>().handle;
  const CompletionChannel* const channel = session.objects().channels.Find(handle);
  if (channel == nullptr) return session.exchange().Error(EINVAL);
  if (channel->users != 0) return session.exchange().Error(EBUSY);
  session.objects().channels.Remove(handle);
  session.exchange().Done();
}

}  // namespace rocegw::session
