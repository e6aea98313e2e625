// SPDX-License-Identifier: Apache-2.0
#include "tests/support/worker_host.h"

#include <sys/eventfd.h>
#include <sys/socket.h>

#include <cstring>
#include <future>

namespace rocegw::testing {
namespace {

UniqueFd MakeEvent() { return UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)); }

}  // namespace

WorkerHost::WorkerHost(size_t workers, session::Options options, bool threads)
    : threads_(threads), control_wake_(MakeEvent()) {
  (void)loop.Open();
  port::PairConfig config;
  config.steering[0] = config.steering[1] = port::SteeringTable(workers);
  ports_ = std::make_unique<port::PairLink>(config);
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
    as.ports = {&ports_->port(0, i)};
    as.link = &one.link;
    as.inboxes = inboxes;
    as.steering = config.steering[0];
    as.counters = &one.counters;
    as.start = session::ControlLoop::Now();
    if (threads_) {
      one.thread = std::move(*worker::WorkerThread::Start(std::move(as), {}, -1));
    } else {
      one.worker = std::make_unique<worker::Worker>(std::move(as));
    }
  }
  server = std::make_unique<session::SessionServer>(
      loop, links, config.steering[0], std::vector{SessionHost::MakeDevice()}, std::move(options),
      [](session::Severity, const std::string&) {});
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

void WorkerHost::Turn() {
  loop.RunOnce({});
  if (threads_) return;
  for (const auto& one : workers_) one->worker->RunOnce(session::ControlLoop::Now());
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

int WorkerHost::Connect(TestClient& client, uint32_t qp) {
  rocegw_qp_attr attr{};
  attr.qp_state = static_cast<uint32_t>(verbs::QpState::kInit);
  attr.port_num = 1;
  attr.access_flags = 7;
  const uint32_t to_init =
      verbs::kAttrState | verbs::kAttrPkeyIndex | verbs::kAttrPort | verbs::kAttrAccessFlags;
  if (const int error = client.Modify(qp, to_init, attr)) return error;
  attr.qp_state = static_cast<uint32_t>(verbs::QpState::kRtr);
  attr.path_mtu = 3;
  attr.dest_qpn = 0x1234;
  attr.rq_psn = 7;
  attr.max_dest_rd_atomic = 16;
  attr.min_rnr_timer = 12;
  const wire::Gid peer = wire::Gid::FromV4(0xC0000202);
  std::memcpy(attr.av.dgid, peer.bytes.data(), sizeof attr.av.dgid);
  const uint32_t to_rtr = verbs::kAttrState | verbs::kAttrAv | verbs::kAttrPathMtu |
                          verbs::kAttrDestQpn | verbs::kAttrRqPsn | verbs::kAttrMaxDestRdAtomic |
                          verbs::kAttrMinRnrTimer;
  if (const int error = client.Modify(qp, to_rtr, attr)) return error;
  attr.qp_state = static_cast<uint32_t>(verbs::QpState::kRts);
  attr.timeout = 14;
  attr.retry_cnt = attr.rnr_retry = 7;
  attr.sq_psn = 9;
  attr.max_rd_atomic = 16;
  const uint32_t to_rts = verbs::kAttrState | verbs::kAttrTimeout | verbs::kAttrRetryCnt |
                          verbs::kAttrRnrRetry | verbs::kAttrSqPsn | verbs::kAttrMaxQpRdAtomic;
  return client.Modify(qp, to_rts, attr);
}

}  // namespace rocegw::testing
