// SPDX-License-Identifier: Apache-2.0
// The attach socket and the greeting.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "gateway/base/descriptor_message.h"
#include "tests/support/session/session_host.h"

namespace rocegw::testing {
namespace {

using session::EventRow;

class AttachSocket : public ::testing::Test {
 protected:
  explicit AttachSocket(const session::Options& options = {}) : host(2, options) {}
  void SetUp() override {
    char name[] = "/tmp/rocegw-attach-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    folder = name;
    path = folder + "/attach.sock";
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  UniqueFd Connect() {
    UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
      socket.Reset();
    return socket;
  }

  SessionHost host;
  std::string folder;
  std::string path;
};

TEST_F(AttachSocket, Listen_ClientsAttachAndTheFileHasItsMode) {
  ASSERT_TRUE(host.server->Listen({path, 0620}).ok());
  struct stat file;
  ASSERT_EQ(::stat(path.c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777, 0620u);
  TestClient client(host, Connect());
  host.Settle();
  EXPECT_TRUE(client.Hello());
  EXPECT_EQ(host.server->session_count(), 1u);
}

class PacedAttachSocket : public AttachSocket {
 protected:
  static session::Options Slow() {
    session::Options options;
    options.session.attaches_per_second = 10;
    options.session.attach_burst = 3;
    return options;
  }
  PacedAttachSocket() : AttachSocket(Slow()) {}
};

TEST_F(PacedAttachSocket, ProgramsBeyondTheRate_WaitAndComeIn) {
  ASSERT_TRUE(host.server->Listen({path}).ok());
  const TimePoint begun = ControlLoop::Now();
  std::vector<UniqueFd> programs(6);
  for (UniqueFd& program : programs) program = Connect();
  host.Settle();
  while (host.server->session_count() < programs.size() && ControlLoop::Now() - begun < Seconds(10))
    host.Settle();
  EXPECT_EQ(host.server->session_count(), programs.size());
  // Three at once, and one of the others came with the passing time.
  EXPECT_GE(ControlLoop::Now() - begun, Milliseconds(200));
}

// Counts what it takes and keeps.
class CountingReceiver final : public session::DescriptorReceiver {
 public:
  session::PassedDescriptor Take(int socket, const session::WantedDescriptor& wanted,
                                 std::vector<UniqueFd>& left) override {
    ++taken;
    return here_.Take(socket, wanted, left);
  }
  void Finish(std::vector<UniqueFd>& left) override { here_.Finish(left); }
  bool Discard(int socket) override {
    ++discarded;
    return here_.Discard(socket);
  }
  void Keep(int) override { ++kept; }
  void Release(int) override { --kept; }
  std::atomic<int> taken = 0;
  std::atomic<int> discarded = 0;
  std::atomic<int> kept = 0;

 private:
  session::ReceiverHere here_;
};

// The release of what they passed could wait, so the control thread must not be the one that
// closes their sockets with it.
TEST_F(AttachSocket, StopListening_ConnectionsThatWaitAreEmptied) {
  const auto receiver = std::make_shared<CountingReceiver>();
  host.server->services().descriptors = receiver;
  ASSERT_TRUE(host.server->Listen({path}).ok());
  EXPECT_EQ(receiver->kept, 1);
  std::vector<UniqueFd> waiting(3);
  const UniqueFd event(::eventfd(0, EFD_CLOEXEC));
  for (UniqueFd& one : waiting) {
    one = Connect();
    ASSERT_EQ(SendDescriptors(one.get(), std::array<uint8_t, 1>{1}, std::array{event.get()}, 0), 1);
  }
  host.server->attach().StopListening(path);
  const TimePoint deadline = ControlLoop::Now() + Seconds(10);
  while (receiver->kept != 0 && ControlLoop::Now() < deadline) std::this_thread::yield();
  EXPECT_EQ(receiver->kept, 0);
  EXPECT_EQ(receiver->discarded, 3);
  for (const UniqueFd& one : waiting) {
    char byte = 0;
    EXPECT_EQ(::recv(one.get(), &byte, sizeof byte, 0), 0);
  }
}

TEST_F(AttachSocket, Listen_SecondDaemonIsTold) {
  ASSERT_TRUE(host.server->Listen({path}).ok());
  SessionHost second;
  // The control thread waits for an earlier daemon's end at most once, a second; a program that
  // listens where the gateway should costs no more than that.
  const TimePoint begun = ControlLoop::Now();
  for (int i = 0; i < 30; ++i) {
    const Status status = second.server->Listen({path});
    EXPECT_EQ(status.error(), EADDRINUSE);
    EXPECT_NE(status.text().find(path), std::string::npos);
  }
  EXPECT_LT(ControlLoop::Now() - begun, Seconds(20)) << "30 waits";
  EXPECT_TRUE(Connect().valid()) << "the first one still listens";
}

TEST_F(AttachSocket, Listen_LeftoverSocketIsReplaced) {
  {
    const UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    ASSERT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  EXPECT_TRUE(host.server->Listen({path}).ok());
}

TEST_F(AttachSocket, Listen_RefusesWhatCannotBe) {
  { std::ofstream file(path); }
  EXPECT_EQ(host.server->Listen({path}).error(), EEXIST);
  EXPECT_EQ(host.server->Listen({folder + "/missing/attach.sock"}).error(), ENOENT);
  EXPECT_EQ(host.server->Listen({std::string(200, 'x')}).error(), ENAMETOOLONG);
  EXPECT_EQ(host.server->Listen({""}).error(), ENAMETOOLONG);
}

// rocegw-run tests if a gateway answers, and its program attaches at once.
TEST_F(AttachSocket, HangUpWithoutGreeting_IsSeenWhenThereIsRoom) {
  session::Options options;
  options.limits.sessions = 1;
  SessionHost small(1, options);
  ASSERT_TRUE(small.server->Listen({path}).ok());
  UniqueFd looks = Connect();
  small.Settle();
  EXPECT_EQ(small.server->session_count(), 1u);
  ::shutdown(looks.get(), SHUT_WR);
  char rest = 0;
  while (::recv(looks.get(), &rest, sizeof rest, 0) != 0) {
    small.RunControl();
    if (::recv(looks.get(), &rest, sizeof rest, 0) != 0) small.RunWorkers();
  }
  EXPECT_EQ(small.server->session_count(), 0u);
  TestClient program(small, Connect());
  EXPECT_TRUE(program.Hello());
  TestClient one_more(small, Connect());
  EXPECT_FALSE(one_more.Hello());
  tenant::AttachCounts outcomes{};
  small.server->services().pools.ForEachPool(
      [&](const tenant::Pool& pool) { outcomes = pool.attaches(); });
  EXPECT_EQ(outcomes, (tenant::AttachCounts{1, 1, 0})) << "who only looks counts nowhere";
}

TEST_F(AttachSocket, Shutdown_RemovesTheSocketAndEndsSessions) {
  ASSERT_TRUE(host.server->Listen({path}).ok());
  TestClient client(host, Connect());
  ASSERT_TRUE(client.Hello());
  client.OpenContext();
  bool done = false;
  host.server->Shutdown([&] { done = true; });
  host.Settle();
  EXPECT_TRUE(done);
  EXPECT_TRUE(client.closed());
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_EQ(host.LinkedObjects(), 0u);
}

// Returns events with this reason, latest first.
std::vector<EventRow> EventsOf(SessionHost& host, const std::string& reason) {
  std::vector<EventRow> found = host.server->services().events.Rows();
  std::erase_if(found, [&](const EventRow& row) { return row.reason != reason; });
  return found;
}

// A program is expected at a socket; then something happens, and time passes.
class ExpectedProgram : public AttachSocket {
 protected:
  static constexpr Duration kWithin = Milliseconds(10);

  // Returns the events about a missing program, if the action took no longer than the program may.
  std::vector<EventRow> EventsAfter(const std::function<void()>& what_happens) {
    for (;;) {
      session::Options options;
      options.expected_within = kWithin;
      expecting = std::make_unique<SessionHost>(1, options);
      EXPECT_TRUE(expecting->server->Listen({path}).ok());
      const TimePoint begin = ControlLoop::Now();
      EXPECT_EQ(expecting->server->ClearSocket(path, true), 0u);
      what_happens();
      if (ControlLoop::Now() >= begin + kWithin) continue;
      const TimePoint end = begin + kWithin * 2;
      while (ControlLoop::Now() < end) expecting->RunControl();
      expecting->RunControl();  // the rounds before may all have been too early
      return EventsOf(*expecting, "SLOT_UNUSED");
    }
  }

  std::unique_ptr<SessionHost> expecting;
};

TEST_F(ExpectedProgram, NoneComes_IsTold) {
  const auto told = EventsAfter([] {});
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].count, 1u);
  EXPECT_EQ(told[0].object, session::kDefaultPool);
  EXPECT_NE(told[0].text.find(path), std::string::npos);
  EXPECT_NE(told[0].text.find("LD_PRELOAD"), std::string::npos);
}

TEST_F(ExpectedProgram, OneComes_WhetherItGreetsOrNot) {
  UniqueFd client;
  EXPECT_TRUE(EventsAfter([&] {
                client = Connect();
                expecting->Settle();
              }).empty());
  EXPECT_EQ(expecting->server->session_count(), 1u);
}

TEST_F(ExpectedProgram, SlotIsGivenBack_OrGoes) {
  EXPECT_TRUE(EventsAfter([&] { (void)expecting->server->ClearSocket(path); }).empty());
  EXPECT_TRUE(EventsAfter([&] { expecting->server->Shutdown([] {}); }).empty());
  EXPECT_EQ(expecting->server->ClearSocket("/no/such/socket", true), 0u);
}

TEST(Attach, Hello_OwnPreloadOfAContainer_IsAnEventInPlainText) {
  SessionHost host;
  auto hello = TestClient::Request<rocegw_hello>(ROCEGW_MSG_HELLO);
  hello.magic = ROCEGW_ABI_MAGIC;
  hello.major = ROCEGW_ABI_MAJOR;
  TestClient without(host);
  without.Call<rocegw_hello_reply>(hello);
  EXPECT_TRUE(EventsOf(host, "OWN_PRELOAD").empty());
  std::strcpy(hello.own_preload, "/lib/libjemalloc.so.2:\x1b[31m\xff");
  TestClient with(host);
  with.Call<rocegw_hello_reply>(hello);
  EXPECT_EQ(with.error(), 0) << "it gets in";
  auto told = EventsOf(host, "OWN_PRELOAD");
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].object, session::kDefaultPool);
  EXPECT_NE(told[0].text.find("with /lib/libjemalloc.so.2:?[31m? besides"), std::string::npos)
      << told[0].text;
  // The whole field, without a terminator.
  std::memset(hello.own_preload, 'x', sizeof hello.own_preload);
  TestClient endless(host);
  endless.Call<rocegw_hello_reply>(hello);
  told = EventsOf(host, "OWN_PRELOAD");
  EXPECT_NE(told[0].text.find("with " + std::string(sizeof hello.own_preload, 'x') + " besides"),
            std::string::npos)
      << told[0].text;
  // An older library does not report it.
  TestClient older(host);
  hello.header.length = offsetof(rocegw_hello, own_preload);
  hello.header.request_id = 1;
  ASSERT_TRUE(older.SendRaw({reinterpret_cast<const uint8_t*>(&hello), hello.header.length}));
  host.Settle();
  EXPECT_EQ(older.Receive()->header().error, 0);
  EXPECT_EQ(EventsOf(host, "OWN_PRELOAD")[0].count, 2u);
}

TEST(Attach, Hello_TellsVersionSessionAndDevices) {
  session::Options options;
  options.sysfs_root = "/run/rocegw/sys";
  options.remap_allowed = false;
  SessionHost host(3, options);
  TestClient client(host);
  auto hello = TestClient::Request<rocegw_hello>(ROCEGW_MSG_HELLO);
  hello.magic = ROCEGW_ABI_MAGIC;
  hello.major = ROCEGW_ABI_MAJOR;
  hello.minor = 99;
  const auto reply = client.Call<rocegw_hello_reply>(hello);
  ASSERT_EQ(client.error(), 0);
  EXPECT_EQ(reply.header.type, static_cast<uint32_t>(ROCEGW_MSG_HELLO));
  EXPECT_EQ(reply.header.request_id, 1u);
  EXPECT_EQ(reply.header.length, sizeof reply);
  EXPECT_EQ(reply.major, ROCEGW_ABI_MAJOR);
  EXPECT_EQ(reply.worker_count, 3u);
  EXPECT_EQ(reply.device_count, 1u);
  EXPECT_NE(reply.session, 0u);
  EXPECT_EQ(reply.flags, 0u);
  EXPECT_STREQ(reply.sysfs_root, "/run/rocegw/sys");
}

TEST(Attach, Hello_OtherMajor_IsAnsweredAndEnds) {
  SessionHost host;
  TestClient client(host);
  auto hello = TestClient::Request<rocegw_hello>(ROCEGW_MSG_HELLO);
  hello.magic = ROCEGW_ABI_MAGIC;
  hello.major = ROCEGW_ABI_MAJOR + 1;
  client.Call<rocegw_hello_reply>(hello);
  EXPECT_EQ(client.error(), EPROTONOSUPPORT);
  EXPECT_TRUE(client.closed());
  EXPECT_EQ(host.server->session_count(), 0u);
}

TEST(Attach, Hello_ShorterAndLongerMessagesAreUnderstood) {
  SessionHost host;
  TestClient client(host);
  ASSERT_TRUE(client.Hello());
  // A message of a later minor version: more bytes than known.
  struct {
    rocegw_object_request known;
    uint8_t more[100];
  } longer{};
  longer.known = TestClient::Request<rocegw_object_request>(ROCEGW_MSG_OPEN_CONTEXT);
  longer.known.header.length = sizeof longer;
  longer.known.header.request_id = 4;
  ASSERT_TRUE(client.SendRaw({reinterpret_cast<uint8_t*>(&longer), sizeof longer}));
  host.Settle();
  auto reply = client.Receive();
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(reply->header().error, 0);
  // A message of an earlier one: missing bytes are zero, here device 0.
  rocegw_request shorter{ROCEGW_MSG_QUERY_DEVICE, sizeof shorter, 5};
  ASSERT_TRUE(client.SendRaw({reinterpret_cast<uint8_t*>(&shorter), sizeof shorter}));
  host.Settle();
  reply = client.Receive();
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(reply->header().error, 0);
  EXPECT_EQ(reply->header().request_id, 5u);
}

TEST(Attach, UnknownRequest_IsEnosys) {
  SessionHost host;
  TestClient client(host);
  ASSERT_TRUE(client.Hello());
  for (const uint32_t type : {0u, 60u, 63u, 127u, 0xFFFFFFFFu}) {
    client.Object(type, 0);
    EXPECT_EQ(client.error(), ENOSYS) << type;
  }
  EXPECT_EQ(host.server->session_count(), 1u);
}

TEST(Attach, QueryDevice_NumbersAreSane) {
  SessionHost host;
  TestClient client(host);
  ASSERT_TRUE(client.Hello());
  auto query = TestClient::Request<rocegw_query_device>(ROCEGW_MSG_QUERY_DEVICE);
  const auto device = client.Call<rocegw_device_reply>(query);
  ASSERT_EQ(client.error(), 0);
  EXPECT_STREQ(device.name, "rocegw0");
  EXPECT_STREQ(device.interface, "eth0");
  EXPECT_EQ(device.max_rd_atomic, 16u);
  EXPECT_EQ(device.active_mtu, 3);
  EXPECT_EQ(device.max_mtu, 5);
  EXPECT_EQ(device.port_state, 4);
  EXPECT_EQ(device.vendor_id, 0x02BADDu);
  EXPECT_NE(device.vendor_id & 0x020000, 0u) << "locally administered";
  EXPECT_EQ(device.max_message, 0x80000000u);
  query.device = 1;
  client.Call<rocegw_device_reply>(query);
  EXPECT_EQ(client.error(), ENODEV);
}

TEST(Attach, QueryGids_OnlyUsedIndicesInPages) {
  SessionHost host;
  session::Device device = SessionHost::MakeDevice();
  device.gids.assign(300, wire::Gid{});
  for (size_t i = 0; i < 300; i += 1) {
    if (i != 3) device.gids[i] = wire::Gid::FromV4(0x0A000000 + static_cast<uint32_t>(i));
  }
  host.server->UpdateDevice(0, device);
  TestClient client(host);
  ASSERT_TRUE(client.Hello());
  auto query = TestClient::Request<rocegw_query_gids>(ROCEGW_MSG_QUERY_GIDS);
  auto reply = client.Call<rocegw_gids_reply>(query);
  ASSERT_EQ(client.error(), 0);
  EXPECT_EQ(reply.count, ROCEGW_GIDS_PER_REPLY);
  EXPECT_EQ(reply.more, 1u);
  EXPECT_EQ(reply.entry[2].index, 2u);
  EXPECT_EQ(reply.entry[3].index, 4u);
  EXPECT_EQ(reply.entry[3].gid[15], 4);
  // The table has 256 entries.
  query.first = 250;
  reply = client.Call<rocegw_gids_reply>(query);
  EXPECT_EQ(reply.count, 6u);
  EXPECT_EQ(reply.more, 0u);
  query.first = 0xFFFFFFFF;
  EXPECT_EQ(client.Call<rocegw_gids_reply>(query).count, 0u);
}

TEST(Attach, SessionLimit_FurtherOnesAreToldAndOneThatLeavesMakesRoom) {
  session::Options options;
  options.limits.sessions = 2;
  SessionHost host(1, options);
  auto a = std::make_unique<TestClient>(host);
  TestClient b(host);
  EXPECT_TRUE(a->Hello());
  EXPECT_TRUE(b.Hello());
  TestClient c(host);
  c.Hello();
  host.Settle();
  EXPECT_EQ(host.server->session_count(), 2u);
  EXPECT_TRUE(host.Logged("limit of sessions"));
  a.reset();
  host.Settle();
  TestClient d(host);
  EXPECT_TRUE(d.Hello());
}

TEST(Attach, NoGreeting_EndsAfterItsTime) {
  session::Options options;
  options.session.hello_within = Milliseconds(0);
  SessionHost host(1, options);
  TestClient silent(host);
  host.Settle();
  EXPECT_TRUE(silent.closed());
  EXPECT_EQ(host.server->session_count(), 0u);
}

// A gateway inside a program ignores the memory descriptor that libraries pass. The worker accesses
// the client's memory directly, in this process.
void ExpectReadsThisProcess(const SessionHost& host) {
  uint64_t word = 5;
  memory::MemoryOp op;
  uint64_t seen = 0;
  op.address = reinterpret_cast<uint64_t>(&word);
  op.length = 8;
  op.buffer = reinterpret_cast<uint8_t*>(&seen);
  memory::MemoryCounts counts;
  EXPECT_EQ(host.workers[0]->sessions.begin()->second.link.space->Execute({&op, 1}, counts), 1u);
  EXPECT_EQ(seen, 5u);
}

TEST(Attach, OwnMemory_NeedsNoDescriptor) {
  session::Options options;
  options.memory_way = session::MemoryWay::kOwn;
  SessionHost host(1, options);
  TestClient client(host);
  const UniqueFd nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
  ASSERT_TRUE(client.Hello(nothing.get()));
  client.Call<rocegw_object_reply>(
      TestClient::Request<rocegw_object_request>(ROCEGW_MSG_SET_MEMORY), nothing.get());
  EXPECT_EQ(client.error(), 0);
  const uint32_t pd = client.AllocPd(client.OpenContext());
  EXPECT_EQ(client.RegMr(pd, 4096, 64).way, static_cast<uint32_t>(ROCEGW_MEMORY_IN_PROCESS));
  ExpectReadsThisProcess(host);
}

TEST(Attach, MemoryDescriptor_IsUsedWhenAskedFor) {
  session::Options options;
  options.memory_way = session::MemoryWay::kDescriptor;
  SessionHost host(1, options);
  TestClient client(host);
  const UniqueFd memory(::open("/proc/self/mem", O_RDWR | O_CLOEXEC));
  ASSERT_TRUE(client.Hello(memory.get()));
  const uint32_t pd = client.AllocPd(client.OpenContext());
  EXPECT_EQ(client.RegMr(pd, 4096, 64).way, static_cast<uint32_t>(ROCEGW_MEMORY_DESCRIPTOR));
  ExpectReadsThisProcess(host);
  // A new descriptor replaces the old one.
  auto set = TestClient::Request<rocegw_object_request>(ROCEGW_MSG_SET_MEMORY);
  client.Call<rocegw_object_reply>(set, memory.get());
  EXPECT_EQ(client.error(), 0);
  client.Call<rocegw_object_reply>(set);
  EXPECT_EQ(client.error(), EBADF);
}

TEST(Attach, NoWayToItsMemory_RegMrIsRefused) {
  session::Options options;
  options.memory_way = session::MemoryWay::kDescriptor;
  SessionHost host(1, options);
  TestClient client(host);
  ASSERT_TRUE(client.Hello());
  const uint32_t pd = client.AllocPd(client.OpenContext());
  client.RegMr(pd, 4096, 64);
  EXPECT_EQ(client.error(), EPERM);
}

TEST(Attach, UntrustedPool_WorkersGetACopier) {
  session::Options options;
  options.trusted = false;
  SessionHost host(2, options);
  while (memory::Copier::LiveThreads() != 0) ::sched_yield();
  TestClient client(host);
  ASSERT_TRUE(client.Hello());
  ASSERT_NE(client.OpenContext(), 0u);
  memory::Copier* const copier = host.workers[1]->sessions.begin()->second.link.copier;
  ASSERT_NE(copier, nullptr);
  EXPECT_EQ(memory::Copier::LiveThreads(), 1u);
  client.Disconnect();
  host.Settle();
  while (memory::Copier::LiveThreads() != 0) ::sched_yield();
}

// While it exists, descriptors of this process's user are unread in a socket, more than the kernel
// allows a process without CAP_SYS_RESOURCE and CAP_SYS_ADMIN, which the calling thread lacks.
class DescriptorsInFlight {
 public:
  DescriptorsInFlight() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    rlimit low = before_;
    low.rlim_cur = kLimit;
    ::setrlimit(RLIMIT_NOFILE, &low);
    SetCapabilities(/*keep=*/false);
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) return;
    sender_.Reset(ends[0]);
    receiver_.Reset(ends[1]);
    const UniqueFd passed(::eventfd(0, EFD_CLOEXEC));
    const std::vector<int> many(128, passed.get());
    for (int i = 0; i < 16 && !exhausted_; ++i) exhausted_ = !SendMany(many);
  }
  ~DescriptorsInFlight() {
    SetCapabilities(/*keep=*/true);
    ::setrlimit(RLIMIT_NOFILE, &before_);
  }
  bool exhausted() const { return exhausted_; }
  // The kernel drops descriptors that no process can receive any more.
  void Release() { receiver_.Reset(); }

 private:
  static constexpr rlim_t kLimit = 256;

  bool SendMany(const std::vector<int>& fds) const {
    char byte = 0;
    iovec part{&byte, 1};
    std::vector<char> control(CMSG_SPACE(fds.size() * sizeof(int)));
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    cmsghdr* const rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
    std::memcpy(CMSG_DATA(rights), fds.data(), fds.size() * sizeof(int));
    return ::sendmsg(sender_.get(), &header, MSG_NOSIGNAL) >= 0 || errno != ETOOMANYREFS;
  }
  void SetCapabilities(bool keep) {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    if (!keep) {
      ::syscall(SYS_capget, &header, held_);
      __user_cap_data_struct fewer[2] = {held_[0], held_[1]};
      fewer[0].effective &= ~(1u << CAP_SYS_RESOURCE | 1u << CAP_SYS_ADMIN);
      ::syscall(SYS_capset, &header, fewer);
    } else {
      ::syscall(SYS_capset, &header, held_);
    }
  }

  rlimit before_{};
  __user_cap_data_struct held_[2] = {};
  UniqueFd sender_;
  UniqueFd receiver_;
  bool exhausted_ = false;
};

TEST(Attach, TooManyDescriptorsInFlight_MessagesWaitAndTheSessionGoesOn) {
  SessionHost host(2);
  TestClient client(host);
  ASSERT_TRUE(client.Hello());
  const uint32_t context = client.OpenContext();
  const uint32_t pd = client.AllocPd(context);
  DescriptorsInFlight many;
  ASSERT_TRUE(many.exhausted());
  auto request = TestClient::Request<rocegw_object_request>(ROCEGW_MSG_CREATE_CHANNEL);
  request.handle = context;
  ASSERT_TRUE(client.Send(request));
  host.Settle();
  EXPECT_FALSE(client.Receive().has_value());
  EXPECT_FALSE(client.closed());
  const auto told = [&] { return host.Told("lie unread in sockets"); };
  while (!told() && !client.closed()) host.loop.RunOnce(Milliseconds(100));
  EXPECT_EQ(host.server->session_count(), 1u);
  many.Release();
  std::optional<ClientMessage> answer;
  while (!answer && !client.closed()) {
    host.loop.RunOnce(Milliseconds(100));
    answer = client.Receive();
  }
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->header().error, 0);
  EXPECT_TRUE(answer->fd.valid());
  EXPECT_NE(client.CreateCq(context).handle, 0u);
  client.Object(ROCEGW_MSG_DEALLOC_PD, pd);
  EXPECT_EQ(client.error(), 0);
}

TEST(Attach, Snapshot_ShowsWhatThereIs) {
  SessionHost host(2);
  TestClient client(host);
  ASSERT_TRUE(client.Hello());
  const uint32_t context = client.OpenContext();
  const uint32_t pd = client.AllocPd(context);
  const uint32_t cq = client.CreateCq(context).handle;
  const auto first = client.CreateQp(pd, cq);
  client.CreateQp(pd, cq);
  const auto mr = client.RegMr(pd, 4096, 64);
  session::StateSnapshot seen;
  int calls = 0;
  host.server->Snapshot({.sessions = true, .qps = true, .mrs = true},
                        [&](session::StateSnapshot snapshot) {
                          seen = std::move(snapshot);
                          ++calls;
                        });
  host.Settle();
  ASSERT_EQ(calls, 1);
  EXPECT_EQ(seen.totals.sessions, 1u);
  EXPECT_EQ(seen.totals.qps, 2u);
  EXPECT_EQ(seen.totals.registered_bytes, 64u);
  ASSERT_EQ(seen.sessions.size(), 1u);
  EXPECT_EQ(seen.sessions[0].pid, ::getpid());
  EXPECT_EQ(seen.sessions[0].qps, 2u);
  EXPECT_EQ(seen.sessions[0].mrs, 1u);
  EXPECT_EQ(seen.sessions[0].registered_bytes, 64u);
  EXPECT_TRUE(seen.sessions[0].trusted);
  EXPECT_GT(seen.sessions[0].attached_ns, 0);
  ASSERT_EQ(seen.qps.size(), 2u);
  EXPECT_TRUE(seen.qps[0].qpn == first.qpn || seen.qps[1].qpn == first.qpn);
  EXPECT_NE(seen.qps[0].worker, seen.qps[1].worker);
  ASSERT_EQ(seen.mrs.size(), 1u);
  EXPECT_EQ(seen.mrs[0].rkey, mr.rkey);
  EXPECT_FALSE(seen.mrs[0].reason.empty());
}

}  // namespace
}  // namespace rocegw::testing
