// SPDX-License-Identifier: Apache-2.0
#include "tests/support/network/gateway_pair.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "gateway/memory/cross_process.h"
#include "gateway/wire/gateway_mad.h"
#include "tests/support/network/buffer_memory.h"
#include "tests/support/qp/qp_transition_table.h"

namespace rocegw::testing {

uint64_t GatewayPair::Base(int side) const {
  return reach_ == Reach::kBuffer ? kBase : reinterpret_cast<uint64_t>(sides_[side].memory.data());
}

GatewayPair::GatewayPair(const GatewayPairOptions& options)
    : reach_(options.reach),
      threads_(options.threads),
      channels_(options.channels),
      channel_paths_(options.channel_paths),
      channel_window_(options.channel_window),
      channel_features_{options.channel_features[0], options.channel_features[1]} {
  port::PairConfig config;
  config.packets_per_queue = 2048;
  config.queue_depth = options.queue_depth;
  config.outside_from = options.outside_from;
  for (int side = 0; side < 2; ++side) {
    sides_[side].steering = port::SteeringTable(options.workers[side]);
    config.steering[side] = sides_[side].steering;
  }
  link_ = std::make_unique<port::PairLink>(config);
  for (int side = 0; side < 2; ++side) BuildSide(side, options);
}

void GatewayPair::BuildSide(int side_index, const GatewayPairOptions& options) {
  Side& side = sides_[side_index];
  const size_t count = options.workers[side_index];
  side.memory.resize(options.memory_bytes);
  if (reach_ == Reach::kBuffer) {
    side.space = std::make_unique<BufferMemory>(side.memory, kBase);
  } else {
    side.space = std::make_unique<memory::CrossProcessMemory>(getpid(), locks_);
  }
  side.control_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  std::vector<worker::WorkerInbox*> inboxes;
  for (size_t w = 0; w < count; ++w) {
    side.links.push_back(std::make_unique<worker::WorkerLink>());
    side.links[w]->worker_wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    side.links[w]->control_wake_fd = side.control_fd;
    side.counters.push_back(std::make_unique<metrics::WorkerCounters>());
    side.inboxes.push_back(std::make_unique<worker::WorkerInbox>(count));
    side.inboxes[w]->wake_fd = side.links[w]->worker_wake_fd;
    inboxes.push_back(side.inboxes[w].get());
  }
  for (size_t w = 0; w < count; ++w) {
    port::PacketPort* port = &link_->port(side_index, w);
    if (options.script != nullptr) {
      side.tampered.push_back(std::make_unique<TamperPort>(*port, *options.script, side_index));
      port = side.tampered.back().get();
    }
    worker::WorkerOptions settings;
    settings.index = static_cast<WorkerIndex>(w);
    settings.ports = {port};
    settings.link = side.links[w].get();
    settings.inboxes = inboxes;
    settings.steering = side.steering;
    settings.counters = side.counters[w].get();
    settings.congestion = settings.channel_congestion = options.congestion;
    settings.start = now_;
    settings.clock = options.clock;
    settings.processor_time = options.processor_time;
    if (w == 0) settings.engine = options.engines[side_index];
    if (threads_) {
      auto thread = worker::WorkerThread::Start(settings, options.waiting, -1);
      ASSERT_TRUE(thread.ok()) << thread.status().text();
      side.threads.push_back(std::move(*thread));
    } else {
      side.workers.push_back(std::make_unique<worker::Worker>(settings));
    }
  }
  for (size_t w = 0; channels_ && channel_features_[side_index] != 0 && w < count; ++w)
    UseChannels(side_index, static_cast<WorkerIndex>(w));
  const std::vector<tenant::Share*> none{nullptr};
  const std::vector<tenant::Share*>& shares =
      options.shares[side_index].empty() ? none : options.shares[side_index];
  const std::vector<memory::Copier*>& copiers = options.copiers[side_index];
  for (size_t i = 0; i < shares.size(); ++i) {
    side.bells.emplace_back();
    for (size_t w = 0; w < count; ++w) {
      side.bells[i].push_back(std::make_unique<Bells>());
      LinkSession(side_index, static_cast<WorkerIndex>(w), SessionId{static_cast<uint32_t>(i + 1)},
                  shares[i], i < copiers.size() ? copiers[i] : nullptr);
    }
  }
}

namespace {
// Behind those that tests choose for queue pairs.
constexpr uint32_t kAcceptors = 0x30000;
constexpr uint32_t kChannelNumbers = 0x30001;
}  // namespace

void GatewayPair::UseChannels(int side, WorkerIndex index) {
  channel::ChannelOptions options;
  options.acceptor = Qpn{uint32_t{index} << port::kBucketShift | kAcceptors};
  for (uint32_t i = 0; i < 16; ++i)
    options.numbers.push_back(Qpn{uint32_t{index} << port::kBucketShift | (kChannelNumbers + i)});
  options.instance = 1000 + static_cast<uint32_t>(side);
  options.worker = index;
  options.features = channel_features_[side];
  options.paths = channel_paths_;
  options.window = channel_window_;
  options.secret = {0x1234 + static_cast<uint64_t>(side), index};
  EXPECT_EQ(Call(side, index, {0, worker::UseChannels{options}}).error, 0);
}

verbs::ChannelTarget GatewayPair::TargetOf(int side, const RingEnd& end) const {
  verbs::ChannelTarget target;
  target.peer = GidOf(side);
  target.peer_worker = WorkerOf(side, end);
  target.acceptor = Qpn{target.peer_worker << port::kBucketShift | kAcceptors};
  target.instance = 1000 + static_cast<uint32_t>(side);
  target.features = wire::kOptionChannel | wire::kOptionOrdering | wire::kOptionEndpoints |
                    wire::kOptionEndpointReads | wire::kOptionInvalidation |
                    wire::kOptionFetchOperate;
  return target;
}

void GatewayPair::LinkSession(int side_index, WorkerIndex index, SessionId id, tenant::Share* share,
                              memory::Copier* copier) {
  Side& side = sides_[side_index];
  Bells& bells = *side.bells[id.value - 1][index];
  bells.wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  worker::LinkSession session;
  session.session = id;
  session.space = side.space.get();
  session.line = &bells.line;
  session.wake_fd = bells.wake_fd;
  session.share = share;
  session.copier = copier;
  EXPECT_EQ(Call(side_index, index, {0, session}).error, 0);
  EXPECT_EQ(Call(side_index, index, {0, worker::AddDoorbellPage{id, 0, bells.page.get()}}).error,
            0);
  verbs::RegionConfig region;
  region.key = KeyOf(side_index, id.value);
  region.session = id;
  region.pd = 1;
  region.access = verbs::kAccessLocalWrite | verbs::kAccessRemoteRead | verbs::kAccessRemoteWrite |
                  verbs::kAccessRemoteAtomic;
  region.iova = region.address = Base(side_index);
  if (reach_ == Reach::kDirect) {
    region.direct = side.memory.data();
    region.direct_length = side.memory.size();
  }
  region.length = side.memory.size();
  EXPECT_EQ(Call(side_index, index, {0, worker::LinkRegion{region}}).error, 0);
}

GatewayPair::~GatewayPair() {
  for (Side& side : sides_) {
    side.threads.clear();
    side.workers.clear();
    for (const auto& link : side.links) close(link->worker_wake_fd);
    for (const auto& session : side.bells) {
      for (const auto& bells : session) close(bells->wake_fd);
    }
    close(side.control_fd);
  }
}

worker::ControlReply GatewayPair::Call(int side_index, WorkerIndex index,
                                       worker::ControlMessage message) {
  Side& side = sides_[side_index];
  message.cookie = ++cookie_;
  EXPECT_TRUE(side.links[index]->to_worker.Push(std::move(message)));
  const uint64_t one = 1;
  EXPECT_EQ(write(side.links[index]->worker_wake_fd, &one, sizeof one), 8);
  for (;;) {
    if (!threads_) side.workers[index]->RunOnce(now_);
    worker::WorkerMessage answer;
    while (side.links[index]->to_control.Pop(answer)) {
      if (answer.cookie == cookie_) return std::get<worker::ControlReply>(answer.body);
      notices.push_back(std::move(answer));
    }
    if (threads_) {
      pollfd wait{side.control_fd, POLLIN, 0};
      poll(&wait, 1, 1);
    }
  }
}

RingEnd& GatewayPair::AddQp(int side_index, RingOptions options) {
  Side& side = sides_[side_index];
  side.ends.push_back(std::make_unique<RingEnd>(options));
  RingEnd& end = *side.ends.back();
  const WorkerIndex index = WorkerOf(side_index, end);
  EXPECT_EQ(Call(side_index, index, {0, worker::LinkCq{end.Cq()}}).error, 0);
  EXPECT_EQ(Call(side_index, index, {0, worker::LinkQp{end.Qp()}}).error, 0);
  return end;
}

void GatewayPair::Connect(RingEnd& a, RingEnd& b, uint8_t path_mtu, uint8_t min_rnr_timer) {
  using namespace verbs;  // NOLINT(google-build-using-namespace)
  RingEnd* ends[2] = {&a, &b};
  for (int side = 0; side < 2; ++side) {
    const Qpn own{ends[side]->options().qpn};
    QpAttributes want;
    want.path_mtu = path_mtu;
    want.max_rd_atomic = want.max_dest_rd_atomic = 8;
    want.timeout = 14;
    want.retry_count = 7;
    want.rnr_retry = 7;
    want.min_rnr_timer = min_rnr_timer;
    want.access = kAccessRemoteRead | kAccessRemoteWrite | kAccessRemoteAtomic;
    const SessionId session{ends[side]->options().session};
    want.path.source = GidOf(side);
    want.path.destination = GidOf(1 - side);
    want.dest_qpn = Qpn{ends[1 - side]->options().qpn};
    sides_[side].attributes[own.value] = want;
    const QpType type = ends[side]->options().type;
    using enum QpState;
    for (const auto& [from, to] : {std::pair{kReset, kInit}, {kInit, kRtr}, {kRtr, kRts}}) {
      want.state = to;
      worker::ModifyQp body{session, own, kAttrState | RuleOf(type, from, to)->must, want, {}};
      if (channels_ && to == kRtr && type == QpType::kRc)
        body.channel = TargetOf(1 - side, *ends[1 - side]);
      EXPECT_EQ(Call(side, WorkerOf(side, *ends[side]), {0, body}).error, 0);
    }
  }
}

void GatewayPair::Remove(int side, RingEnd& end) {
  const WorkerIndex index = WorkerOf(side, end);
  const SessionId session{end.options().session};
  EXPECT_EQ(Call(side, index, {0, worker::UnlinkQp{session, Qpn{end.options().qpn}}}).error, 0);
  EXPECT_EQ(Call(side, index, {0, worker::UnlinkCq{session, end.options().handle}}).error, 0);
}

void GatewayPair::EndProcess(int side) {
  ASSERT_EQ(reach_, Reach::kBuffer);
  static_cast<BufferMemory&>(*sides_[side].space).EndProcess();
}

void GatewayPair::Ring(int side_index, RingEnd& end) {
  Bells& bells = BellsOf(side_index, end);
  if (!end.Ring(*bells.page, bells.line)) return;
  if (threads_) {
    const uint64_t one = 1;
    EXPECT_EQ(write(bells.wake_fd, &one, sizeof one), 8);
  } else {
    sides_[side_index].workers[WorkerOf(side_index, end)]->OnWake(SessionId{end.options().session},
                                                                  now_);
  }
}

void GatewayPair::SetLeafOnly(int side, RingEnd& end) {
  rocegw_doorbell_page& page = *BellsOf(side, end).page;
  page.leaf[end.options().handle / 64] |= uint64_t{1} << (end.options().handle % 64);
}

void GatewayPair::Step(Duration by) {
  now_ = now_ + by;
  for (int side_index = 0; side_index < 2; ++side_index) {
    for (const auto& worker : sides_[side_index].workers) worker->RunOnce(now_);
  }
  TakeNotices();
}

void GatewayPair::TakeNotices() {
  for (const Side& side : sides_) {
    for (const auto& link : side.links) {
      worker::WorkerMessage notice;
      while (link->to_control.Pop(notice)) notices.push_back(std::move(notice));
    }
  }
}

uint64_t GatewayPair::Count(int side, metrics::Counter metrics::WorkerCounters::*counter) const {
  uint64_t total = 0;
  for (const auto& block : sides_[side].counters) total += ((*block).*counter).Read();
  return total;
}

uint64_t GatewayPair::Drops(int side, metrics::DropReason reason) const {
  uint64_t total = 0;
  for (const auto& block : sides_[side].counters) total += block->DropCount(reason);
  return total;
}

}  // namespace rocegw::testing
