// SPDX-License-Identifier: Apache-2.0
#include "tests/support/session/worker_host.h"

#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <future>
#include <utility>

#include "tests/support/qp/qp_transition_table.h"

namespace rocegw::testing {
namespace {

UniqueFd MakeEvent() { return UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)); }

}  // namespace

std::shared_ptr<port::PairLink> WorkerHost::LinkFor(size_t workers) {
  port::PairConfig config;
  config.steering[0] = config.steering[1] = port::SteeringTable(workers);
  return std::make_shared<port::PairLink>(config);
}

WorkerHost::WorkerHost(size_t workers, session::Options options, bool threads,
                       std::shared_ptr<port::PairLink> link, int side, session::SourceLookup lookup)
    : threads_(threads),
      control_wake_(MakeEvent()),
      ports_(link != nullptr ? std::move(link) : LinkFor(workers)) {
  (void)loop.Open();
  std::vector<worker::WorkerInbox*> inboxes;
  std::vector<worker::WorkerLink*> links;
  for (size_t i = 0; i < workers; ++i) {
    One& one = *workers_.emplace_back(std::make_unique<One>(workers));
    one.wake = MakeEvent();
    one.link.worker_wake_fd = one.inbox.wake_fd = one.wake.get();
    one.link.control_wake_fd = control_wake_.get();
    inboxes.push_back(&one.inbox);
    links.push_back(&one.link);
  }
  for (size_t i = 0; i < workers; ++i) {
    One& one = *workers_[i];
    worker::WorkerOptions as;
    as.index = static_cast<WorkerIndex>(i);
    as.ports = {&ports_->port(static_cast<size_t>(side), i)};
    as.link = &one.link;
    as.inboxes = inboxes;
    as.steering = port::SteeringTable(workers);
    as.counters = &one.counters;
    as.start = ControlLoop::Now();
    if (threads_) {
      one.thread = std::move(*worker::WorkerThread::Start(std::move(as), {}, -1));
    } else {
      as.watch.watch = [](void* context, int fd, SessionId session, bool add) {
        auto& watched = static_cast<One*>(context)->watched;
        if (add) {
          watched.emplace(fd, session);
        } else {
          watched.erase(fd);
        }
      };
      as.watch.context = &one;
      one.worker = std::make_unique<worker::Worker>(std::move(as));
    }
  }
  session::Device device = SessionHost::MakeDevice();
  device.gids[0] = GidOf(side);
  server = std::make_unique<session::SessionServer>(
      loop, links, port::SteeringTable(workers), std::vector{device}, std::move(options),
      [this](session::Severity, const std::string& line) { log.push_back(line); },
      std::move(lookup));
}

WorkerHost::~WorkerHost() {
  std::atomic<bool> gone{false};
  if (control_.joinable()) {
    loop.Post([&] { server->Shutdown([&] { gone = true; }); });
    while (!gone.load()) ::sched_yield();
    loop.Stop();
    control_.join();
  } else {
    server->Shutdown([&] { gone = true; });
    while (!gone.load()) Turn();
  }
  for (const auto& one : workers_) one->thread.reset();
}

void WorkerHost::SetPool(const tenant::PoolSettings& settings) {
  tenant::TenantSettings tenant;
  tenant.name = tenant::TenantOf(settings.name);
  server->SetTenant(tenant);
  server->SetPool(settings, {});
}

void WorkerHost::StartControl() {
  control_ = std::thread([this] { loop.Run(); });
}

void WorkerHost::OnControl(const std::function<void()>& task) {
  std::promise<void> done;
  loop.Post([&] {
    task();
    done.set_value();
  });
  done.get_future().wait();
}

void WorkerHost::OwnTurn() {
  loop.RunOnce({});
  if (threads_) return;
  for (const auto& one : workers_) {
    const TimePoint now = ControlLoop::Now();
    for (const auto& [fd, session] : one->watched) {
      uint64_t value = 0;
      if (::read(fd, &value, sizeof value) == sizeof value) one->worker->OnWake(session, now);
    }
    one->worker->RunOnce(now);
  }
}

void WorkerHost::Turn() {
  OwnTurn();
  if (neighbour_ != nullptr) neighbour_->OwnTurn();
}

void WorkerHost::Settle() {
  for (int quiet = 0; quiet < 3;) {
    Turn();
    quiet = server->services().workers.unanswered() != 0 ? 0 : quiet + 1;
  }
}

std::unique_ptr<TestClient> WorkerHost::Join(const std::string& pool) {
  int ends[2] = {-1, -1};
  (void)!::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends);
  const auto attach = [this, socket = ends[1], &pool] { server->Attach(UniqueFd(socket), pool); };
  control_.joinable() ? OnControl(attach) : attach();
  auto client = std::make_unique<TestClient>([this] { Settle(); }, UniqueFd(ends[0]));
  client->AnswersTakeTime();
  if (control_.joinable()) client->HostHasThreads();
  return client;
}

WorkerHost::Program WorkerHost::Begin(const std::string& pool) {
  Program program;
  program.client = Join(pool);
  program.client->Hello();
  const uint32_t context = program.client->OpenContext();
  program.pd = program.client->AllocPd(context);
  program.cq = program.client->CreateCq(context, 256).handle;
  return program;
}

int WorkerHost::Connect(TestClient& client, uint32_t qp, const Peer& peer, verbs::QpType type) {
  rocegw_qp_attr attr{};
  attr.port_num = 1;
  attr.access_flags = 15 | verbs::kAccessFlushGlobal;
  attr.qkey = kQkey;
  attr.path_mtu = 3;
  attr.dest_qpn = peer.qpn;
  attr.rq_psn = attr.sq_psn = 7;
  attr.max_dest_rd_atomic = attr.max_rd_atomic = 16;
  attr.min_rnr_timer = 12;
  std::memcpy(attr.av.dgid, peer.gid.bytes.data(), sizeof attr.av.dgid);
  attr.timeout = 14;
  attr.retry_cnt = attr.rnr_retry = 7;
  using enum verbs::QpState;
  for (const auto& [from, to] : {std::pair{kReset, kInit}, {kInit, kRtr}, {kRtr, kRts}}) {
    attr.qp_state = static_cast<uint32_t>(to);
    const uint32_t must = RuleOf(type, from, to)->must;
    if (const int error = client.Modify(qp, verbs::kAttrState | must, attr)) return error;
  }
  return 0;
}

uint64_t WorkerHost::Count(metrics::Counter metrics::WorkerCounters::*counter) const {
  uint64_t total = 0;
  for (const auto& one : workers_) total += (one->counters.*counter).Read();
  return total;
}

}  // namespace rocegw::testing
