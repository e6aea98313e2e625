// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/host/host.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "gateway/wire/gateway_mad.h"

namespace rocegw::sim {
namespace {

constexpr SessionId kSession{1};
// Capacity of the rings to and from the control thread.
constexpr size_t kControlMessages = 16;
// A worker that is busy without moving packets waits for its clock: its next iteration is this much
// later.
constexpr Duration kWithoutPackets = Nanoseconds(500);
// Indices within a bucket, above those of programs' queue pairs.
constexpr uint32_t kAcceptorIndex = 0x30000;
constexpr uint32_t kChannelIndex = kAcceptorIndex + 1;
constexpr uint32_t kChannels = 4096;
// Instance of the gateway; a simulated gateway never restarts, and one that takes over has the
// same.
constexpr uint32_t kInstance = 1000;

void Must(const worker::ControlReply& reply, const char* what) {
  if (reply.error == 0) return;
  std::fprintf(stderr, "virtual host: %s: errno %d\n", what, reply.error);
  std::abort();
}

}  // namespace

Host::One::One(Host& host, size_t inboxes)
    : port(host.network_, host.config_.nic, host.config_.cpu, host.number()),
      link(kControlMessages),
      inbox(inboxes) {}

Host::Host(Network& network, uint32_t number, const HostConfig& config)
    : Endpoint(number),
      network_(network),
      config_(config),
      cc_profile_(config.cc_profile),
      own_memory_(config.shared_memory.empty() ? config.memory_bytes : 0),
      memory_(config.shared_memory.empty() ? std::span<uint8_t>(own_memory_)
                                           : config.shared_memory),
      space_(memory_, kBase),
      steering_(config.workers),
      random_(network.NextSeed()) {
  if (config.copier_latest.ns != 0) {
    copier_ = std::make_unique<LateCopier>(space_, network, config.copier_latest, config.workers,
                                           config.copier_depth);
  }
  // A single worker gets nothing from others.
  const size_t inboxes = config.workers == 1 ? 0 : config.workers;
  for (size_t w = 0; w < config.workers; ++w)
    workers_.push_back(std::make_unique<One>(*this, inboxes));
  for (size_t w = 0; w < config.workers; ++w) {
    One& one = *workers_[w];
    if (config.copy_engine != 0) {
      one.engine = std::make_unique<testing::FakeCopyQueue>(testing::FakeCopyOptions{
          .depth = 16, .seed = config.copy_engine + w, .latest = 6, .fails = 2});
    }
    one.worker = MakeWorker(w);

    const auto index = static_cast<WorkerIndex>(w);
    worker::LinkSession session;
    session.session = kSession;
    session.space = &space_;
    session.line = &one.line;
    session.copier = copier_.get();
    Must(Call(index, {0, session}), "session");
    Must(Call(index, {0, worker::AddDoorbellPage{kSession, 0, &one.page}}), "doorbells");
    verbs::RegionConfig region;
    region.key = MemoryKey{key()};
    region.session = kSession;
    region.pd = 1;
    region.access = verbs::kAccessLocalWrite | verbs::kAccessRemoteRead |
                    verbs::kAccessRemoteWrite | verbs::kAccessRemoteAtomic |
                    verbs::kAccessFlushGlobal;
    region.iova = region.address = kBase;
    region.length = memory_.size();
    if (config.copy_engine != 0 || config.nic.outside_from != port::TxPacket::kNeverOutside) {
      region.direct = memory_.data();
      region.direct_length = memory_.size();
    }
    Must(Call(index, {0, worker::LinkRegion{region}}), "region");
    if (!config.channels) continue;
    const SecretKey secret{network.NextSeed(), network.NextSeed()};
    Must(Call(index, {0, worker::UseChannels{Channels(w, secret)}}), "channels");
    Must(Call(index, {0, worker::UseKeys{config.keys}}), "keys");
  }
}

std::unique_ptr<worker::Worker> Host::MakeWorker(size_t index) {
  One& one = *workers_[index];
  worker::WorkerOptions options;
  options.index = static_cast<WorkerIndex>(index);
  options.ports = {&one.port};
  options.link = &one.link;
  for (const auto& each : workers_) options.inboxes.push_back(&each->inbox);
  options.steering = steering_;
  options.counters = one.counters.get();
  options.congestion = Congestion();
  options.congestion_policy = config_.congestion_policy;
  options.channel_congestion = options.congestion;
  options.channel_policy = config_.channel_policy;
  options.start = network_.now();
  // Bursts of a simulated NIC are short.
  if (one.engine != nullptr)
    options.engine = {.queue = one.engine.get(), .minimum_bytes = 64, .last_by_processor = 0};
  return std::make_unique<worker::Worker>(std::move(options));
}

channel::ChannelOptions Host::Channels(size_t index, const SecretKey& secret) const {
  const uint32_t bucket = static_cast<uint32_t>(index) << port::kBucketShift;
  channel::ChannelOptions channels;
  channels.acceptor = Qpn{bucket | kAcceptorIndex};
  for (uint32_t i = 0; i < kChannels; ++i)
    channels.numbers.push_back(Qpn{bucket | (kChannelIndex + i)});
  channels.features = config_.channel_features != 0
                          ? config_.channel_features
                          : wire::kOptionChannel | wire::kOptionSelectiveAck |
                                wire::kOptionOrdering | wire::kOptionEndpoints |
                                wire::kOptionEndpointReads | wire::kOptionFetchOperate |
                                (config_.bundles ? wire::kOptionBundles : 0u) |
                                flow::OptionOf(config_.congestion.kind);
  channels.instance = kInstance + number();
  channels.worker = static_cast<uint16_t>(index);
  channels.window = config_.channel_window;
  channels.paths = config_.channel_paths;
  channels.secret = secret;
  return channels;
}

verbs::ChannelTarget Host::ChannelTo(Qpn qpn) const {
  const WorkerIndex index = steering_.WorkerOf(qpn);
  return {.peer = gid(),
          .acceptor = Qpn{uint32_t{index} << port::kBucketShift | kAcceptorIndex},
          .peer_worker = index,
          .instance = kInstance + number(),
          .features = wire::kOptionChannel | wire::kOptionSelectiveAck | wire::kOptionOrdering |
                      wire::kOptionEndpoints | wire::kOptionEndpointReads | wire::kOptionPlacement |
                      wire::kOptionFetchOperate |
                      (config_.keys.active() ? wire::kOptionAuthentication : 0u) |
                      (config_.keys.seals() ? wire::kOptionSealing : 0u)};
}

Host::~Host() = default;

void Host::Attach(Link& uplink) {
  cc_profile_.link_bits_per_second = static_cast<uint64_t>(uplink.config().bits_per_second);
  for (const auto& one : workers_) one->port.Attach(uplink);
}

void Host::TakeNotices(One& one) {
  worker::WorkerMessage message;
  while (one.link.to_control.Pop(message)) notices.push_back(std::move(message));
}

worker::ControlReply Host::Call(WorkerIndex index, worker::ControlMessage message) {
  One& one = *workers_[index];
  message.cookie = ++cookie_;
  Remember(one, message);
  one.rests = false;
  if (!one.link.to_worker.Push(std::move(message))) std::abort();
  for (;;) {
    one.port.BeginTurn();
    one.worker->RunOnce(network_.now());
    worker::WorkerMessage answer;
    while (one.link.to_control.Pop(answer)) {
      if (answer.cookie == cookie_) {
        Schedule(index, network_.now());
        return std::get<worker::ControlReply>(answer.body);
      }
      notices.push_back(std::move(answer));
    }
  }
}

RingEnd& Host::AddQp(const RingOptions& options) {
  RingEnd& end = *ends_.emplace_back(std::make_unique<RingEnd>(options));
  Must(Call(WorkerOf(end), {0, worker::LinkCq{end.Cq()}}), "completion queue");
  Must(Call(WorkerOf(end), {0, worker::LinkQp{end.Qp()}}), "queue pair");
  return end;
}

void Host::ConnectTo(RingEnd& own, const wire::Gid& peer, Qpn peer_qpn, Psn send_psn,
                     Psn receive_psn, const ConnectionOptions& options,
                     const std::optional<verbs::ChannelTarget>& channel) {
  using namespace verbs;  // NOLINT(google-build-using-namespace)
  const Qpn qpn{own.options().qpn};
  QpAttributes want;
  want.path_mtu = options.path_mtu;
  want.max_rd_atomic = want.max_dest_rd_atomic = options.rd_atomic;
  want.timeout = options.timeout;
  want.retry_count = options.retry_count;
  want.rnr_retry = options.rnr_retry;
  want.min_rnr_timer = options.min_rnr_timer;
  want.access = kAccessRemoteRead | kAccessRemoteWrite | kAccessRemoteAtomic | kAccessFlushGlobal;
  want.sq_psn = send_psn;
  want.rq_psn = receive_psn;
  want.dest_qpn = peer_qpn;
  want.path.source = gid();
  want.path.destination = peer;
  want.path.traffic_class = options.traffic_class;
  want.path.source_port = port::SourcePort(
      port::PathHash(want.path.source, peer, qpn.value ^ peer_qpn.value), peer_qpn);
  const auto step = [&](QpState state, uint32_t mask) {
    want.state = state;
    worker::ModifyQp modify{kSession, qpn, kAttrState | mask, want, {}};
    if (state == QpState::kRtr) modify.channel = channel;
    Must(Call(WorkerOf(own), {0, modify}), "modify");
  };
  step(QpState::kInit, kAttrPkeyIndex | kAttrPort | kAttrAccessFlags);
  step(QpState::kRtr, kAttrAv | kAttrPathMtu | kAttrDestQpn | kAttrRqPsn | kAttrMaxDestRdAtomic |
                          kAttrMinRnrTimer);
  step(QpState::kRts,
       kAttrTimeout | kAttrRetryCnt | kAttrRnrRetry | kAttrSqPsn | kAttrMaxQpRdAtomic);
}

void Host::Connect(Host& a, RingEnd& qp_a, Host& b, RingEnd& qp_b,
                   const ConnectionOptions& options) {
  const Psn psn_a(static_cast<uint32_t>(a.random_.Bits()) & kPsnMask);
  const Psn psn_b(static_cast<uint32_t>(a.random_.Bits()) & kPsnMask);
  const Qpn qpn_a{qp_a.options().qpn}, qpn_b{qp_b.options().qpn};
  std::optional<verbs::ChannelTarget> to_a, to_b;
  if (options.channel) {
    to_a = a.ChannelTo(qpn_a);
    to_b = b.ChannelTo(qpn_b);
  }
  a.ConnectTo(qp_a, b.gid(), qpn_b, psn_a, psn_b, options, to_b);
  b.ConnectTo(qp_b, a.gid(), qpn_a, psn_b, psn_a, options, to_a);
}

void Host::ReadyEndpoint(RingEnd& own, uint32_t key) {
  using namespace verbs;  // NOLINT(google-build-using-namespace)
  QpAttributes want;
  want.qkey = key;
  const auto step = [&](QpState state, uint32_t mask) {
    want.state = state;
    const worker::ModifyQp modify{kSession, Qpn{own.options().qpn}, kAttrState | mask, want, {}};
    Must(Call(WorkerOf(own), {0, modify}), "modify endpoint");
  };
  step(QpState::kInit, kAttrPkeyIndex | kAttrPort | kAttrQkey);
  step(QpState::kRtr, 0);
  step(QpState::kRts, kAttrSqPsn);
}

void Host::AddPeer(uint32_t handle, const Host& host, const RingEnd& endpoint, uint32_t key) {
  worker::LinkPeer link{kSession, handle, {}};
  link.peer.endpoint = Qpn{endpoint.options().qpn};
  link.peer.key = key;
  link.peer.path.source = gid();
  link.peer.path.destination = host.gid();
  link.peer.target = host.ChannelTo(link.peer.endpoint);
  for (size_t index = 0; index < workers_.size(); ++index)
    Must(Call(static_cast<WorkerIndex>(index), {0, link}), "peer");
}

void Host::Remove(RingEnd& end) {
  Must(Call(WorkerOf(end), {0, worker::UnlinkQp{kSession, Qpn{end.options().qpn}}}), "unlink");
  Must(Call(WorkerOf(end), {0, worker::UnlinkCq{kSession, end.options().handle}}), "unlink");
}

void Host::Ring(RingEnd& end) {
  const size_t index = WorkerOf(end);
  One& one = *workers_[index];
  // A worker that rests takes no doorbell; that of its successor stays set.
  if (end.Ring(one.page, one.line) && !replacing_) one.worker->OnWake(kSession, network_.now());
  Schedule(index, network_.now());
}

void Host::Arrive(Packet* packet) {
  const Qpn qpn = port::DestinationQpn(packet->bytes());
  size_t index = steering_.WorkerOf(qpn);
  if (config_.wrong_queue > 0 && random_.Chance(config_.wrong_queue)) {
    index = random_.Below(workers_.size());
  }
  workers_[index]->port.Enqueue(packet);
  Schedule(index, network_.now());
}

void Host::Schedule(size_t worker, TimePoint when) {
  One& one = *workers_[worker];
  when = std::max({when, network_.now(), one.free_at});
  if (when >= one.turn_at) return;
  one.turn_at = when;
  network_.queue().At(when, *this, worker);
}

void Host::OnEvent(uint64_t argument) {
  // Another event may have made the iteration happen earlier.
  if (workers_[argument]->turn_at != network_.now()) return;
  Turn(argument);
}

void Host::Turn(size_t worker) {
  One& one = *workers_[worker];
  const TimePoint now = network_.now();
  one.turn_at = kNever;
  ++turns_;
  one.port.BeginTurn();
  bool busy = true;
  if (replacing_) {
    one.rests = one.worker->Rest(now);
    busy = !one.rests;
  } else {
    busy = one.worker->RunOnce(now);
  }
  one.free_at = now + Nanoseconds(std::max<int64_t>(one.port.spent(), 1));
  if (one.port.has_received() && !replacing_) {
    Schedule(worker, now);
  } else if (one.port.pushed_back()) {
    Schedule(worker, one.port.RoomAt());
  } else if (busy) {
    Schedule(worker, one.port.moved() ? now : now + kWithoutPackets);
  }
  if (const TimePoint deadline = one.worker->NextDeadline(); deadline != kNever && !replacing_) {
    Schedule(worker, deadline);
  }
  if (copier_ != nullptr && copier_->due(static_cast<WorkerIndex>(worker)) != kNever)
    Schedule(worker, copier_->due(static_cast<WorkerIndex>(worker)));
  for (size_t other = 0; workers_.size() > 1 && other < workers_.size(); ++other) {
    if (!workers_[other]->inbox.from[worker].empty()) Schedule(other, now);
  }
  if (!one.link.to_control.empty()) TakeNotices(one);
  if (replacing_) ReplaceResting();
  for (Program* program : programs_) program->Look(now);
}

uint64_t Host::Count(metrics::Counter metrics::WorkerCounters::*counter) const {
  uint64_t total = 0;
  for (const auto& one : workers_) total += ((*one->counters).*counter).Read();
  return total;
}

uint64_t Host::overflows() const {
  uint64_t total = 0;
  for (const auto& one : workers_) total += one->port.overflows();
  return total;
}

uint64_t Host::DropCount(metrics::DropReason reason) const {
  uint64_t total = 0;
  for (const auto& one : workers_) total += one->counters->DropCount(reason);
  return total;
}

}  // namespace rocegw::sim
