// SPDX-License-Identifier: Apache-2.0
// Clients that break the rules or die: each loses its own session, with a reason, and nothing of it
// remains.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <thread>

#include "tests/support/random.h"
#include "tests/support/session/session_host.h"

namespace rocegw::testing {
namespace {

size_t OpenDescriptors() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    ++count;
  return count;
}

class HostileClient : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(bystander.Hello());
    bystander_context = bystander.OpenContext();
    before = host.LinkedObjects();
  }
  void TearDown() override {
    EXPECT_NE(bystander.AllocPd(bystander_context), 0u) << "the bystander goes on";
    EXPECT_EQ(host.BrokenRules(), std::vector<std::string>());
  }
  void ExpectGone(TestClient& client, const std::string& reason) {
    host.Settle();
    EXPECT_TRUE(client.closed());
    EXPECT_EQ(host.server->session_count(), 1u);
    EXPECT_EQ(host.LinkedObjects(), before);
    EXPECT_TRUE(host.Logged(reason)) << "last line: " << (host.log.empty() ? "" : host.log.back());
  }

  SessionHost host;
  TestClient bystander{host};
  uint32_t bystander_context = 0;
  size_t before = 0;
};

TEST_F(HostileClient, FirstMessageIsNoGreeting) {
  TestClient client(host);
  client.Object(ROCEGW_MSG_ALLOC_PD, 1);
  ExpectGone(client, "not a greeting");
}

TEST_F(HostileClient, WrongMagic) {
  TestClient client(host);
  auto hello = TestClient::Request<rocegw_hello>(ROCEGW_MSG_HELLO);
  hello.magic = 0x12345678;
  client.Send(hello);
  ExpectGone(client, "another protocol");
}

TEST_F(HostileClient, SecondGreeting) {
  TestClient client(host);
  ASSERT_TRUE(client.Hello());
  client.Hello();
  ExpectGone(client, "second greeting");
}

TEST_F(HostileClient, LengthThatIsNotTheMessages) {
  TestClient client(host);
  ASSERT_TRUE(client.Hello());
  auto request = TestClient::Request<rocegw_object_request>(ROCEGW_MSG_OPEN_CONTEXT);
  request.header.length += 8;
  client.Send(request);
  ExpectGone(client, "another length");
}

TEST_F(HostileClient, TinyMessage) {
  TestClient client(host);
  ASSERT_TRUE(client.Hello());
  const uint8_t bytes[15] = {1};
  client.SendRaw(bytes);
  ExpectGone(client, "shorter than its header");
}

TEST_F(HostileClient, OversizeMessage) {
  TestClient client(host);
  ASSERT_TRUE(client.Hello());
  const std::vector<uint8_t> bytes(ROCEGW_MESSAGE_MAX + 1);
  client.SendRaw(bytes);
  ExpectGone(client, "longer than");
}

TEST_F(HostileClient, FloodOfDescriptors_NoneStays) {
  const size_t descriptors = OpenDescriptors();
  for (int i = 0; i < 20; ++i) {
    TestClient client(host);
    ASSERT_TRUE(client.Hello());
    auto request = TestClient::Request<rocegw_object_request>(ROCEGW_MSG_OPEN_CONTEXT);
    const std::vector<int> many(200, STDIN_FILENO);
    client.SendRaw({reinterpret_cast<uint8_t*>(&request), sizeof request}, many);
    host.Settle();
    EXPECT_FALSE(client.closed());
  }
  host.Settle();
  EXPECT_EQ(OpenDescriptors(), descriptors);
}

TEST_F(HostileClient, FloodOfDescriptorsWithARequestThatTakesOne_IsRefused) {
  const size_t descriptors = OpenDescriptors();
  {
    TestClient client(host);
    ASSERT_TRUE(client.Hello());
    auto request = TestClient::Request<rocegw_object_request>(ROCEGW_MSG_SET_MEMORY);
    request.header.request_id = 7;
    const std::vector<int> many(200, STDIN_FILENO);
    client.SendRaw({reinterpret_cast<uint8_t*>(&request), sizeof request}, many);
    host.Settle();
    const auto answer = client.Receive();
    ASSERT_TRUE(answer);
    EXPECT_EQ(session::DecodeAs<rocegw_reply>(answer->bytes).error, EINVAL);
    EXPECT_NE(client.OpenContext(), 0u) << "the session goes on";
  }
  host.Settle();
  EXPECT_EQ(OpenDescriptors(), descriptors);
}

TEST_F(HostileClient, DescriptorsThatNobodyAskedFor_AreClosed) {
  TestClient client(host);
  ASSERT_TRUE(client.Hello());
  const uint32_t context = client.OpenContext();
  const UniqueFd events = std::move(client.received_fd);
  const size_t descriptors = OpenDescriptors();
  for (int i = 0; i < 100; ++i) {
    auto alloc = TestClient::Request<rocegw_alloc_pd>(ROCEGW_MSG_ALLOC_PD);
    alloc.context = context;
    client.Call<rocegw_object_reply>(alloc, STDIN_FILENO);
    ASSERT_EQ(client.error(), 0);
  }
  host.Settle();
  EXPECT_EQ(OpenDescriptors(), descriptors);
}

// TCP socket whose close blocks for two seconds: it lingers with data that its peer never reads.
class LingeringSocket {
 public:
  LingeringSocket() {
    const UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(listener.get(), generic, sizeof address), 0);
    EXPECT_EQ(::listen(listener.get(), 1), 0);
    EXPECT_EQ(::getsockname(listener.get(), generic, &length), 0);
    ours_.Reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(ours_.get(), generic, sizeof address), 0);
    peer_.Reset(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    const std::vector<uint8_t> filler(1 << 20);
    while (::send(ours_.get(), filler.data(), filler.size(), MSG_DONTWAIT) > 0) {
    }
    const linger wait{1, kSeconds};
    EXPECT_EQ(::setsockopt(ours_.get(), SOL_SOCKET, SO_LINGER, &wait, sizeof wait), 0);
  }
  int get() const { return ours_.get(); }
  // From now on only the message holds the descriptor.
  void Forget() { ours_.Reset(); }

 private:
  static constexpr int kSeconds = 2;
  UniqueFd ours_;
  UniqueFd peer_;
};

class LingeringClient : public HostileClient {
 protected:
  void SetUp() override {
    HostileClient::SetUp();
    host.blocked_calls = 1;
  }
  // During the close, which must not delay others.
  void ExpectOthersGoOn() {
    EXPECT_EQ(session::ClientCallQueue::HeldByAll(), 1u) << "the close still waits";
    TestClient other(host);
    EXPECT_TRUE(other.Hello());
    EXPECT_NE(bystander.AllocPd(bystander_context), 0u);
    EXPECT_EQ(session::ClientCallQueue::HeldByAll(), 1u) << "the close still waits";
  }
  static void WaitForClose() {
    while (session::ClientCallQueue::HeldByAll() != 0) std::this_thread::yield();
  }
};

TEST_F(LingeringClient, InARequest_ItsCloseStopsOnlyItsOwnProgram) {
  LingeringSocket socket;
  TestClient client(host);
  ASSERT_TRUE(client.Hello());
  auto alloc = TestClient::Request<rocegw_alloc_pd>(ROCEGW_MSG_ALLOC_PD);
  alloc.context = client.OpenContext();
  ASSERT_TRUE(client.Send(alloc, socket.get()));
  socket.Forget();
  host.Settle();
  ExpectOthersGoOn();
  WaitForClose();
}

TEST_F(LingeringClient, AsMemory_ItsCloseStopsOnlyItsOwnProgram) {
  LingeringSocket socket;
  TestClient client(host);
  ASSERT_TRUE(client.Send(TestClient::Request<rocegw_hello>(ROCEGW_MSG_HELLO), socket.get()));
  socket.Forget();
  host.Settle();
  ExpectOthersGoOn();
  WaitForClose();
}

TEST_F(LingeringClient, AmongManyDescriptors_ItsCloseStopsOnlyItsOwnProgram) {
  LingeringSocket socket;
  TestClient client(host);
  ASSERT_TRUE(client.Hello());
  const auto request = TestClient::Request<rocegw_object_request>(ROCEGW_MSG_OPEN_CONTEXT);
  const std::vector<int> fds = {socket.get(), STDIN_FILENO};
  client.SendRaw({reinterpret_cast<const uint8_t*>(&request), sizeof request}, fds);
  socket.Forget();
  host.Settle();
  ExpectOthersGoOn();
  WaitForClose();
}

TEST_F(LingeringClient, InAMessageThatNobodyReads_ItsCloseStopsOnlyItsOwnProgram) {
  LingeringSocket socket;
  {
    TestClient client(host);
    ASSERT_TRUE(client.Hello());
    const uint8_t byte = 0;
    // The first message ends the session, the second stays in the connection.
    client.SendRaw({&byte, 1});
    client.SendRaw({&byte, 1}, {{socket.get()}});
    socket.Forget();
    host.Settle();
    EXPECT_TRUE(client.closed());
  }
  ExpectOthersGoOn();
  WaitForClose();
}

TEST_F(LingeringClient, InAMessageOfNoBytesBehindOthers_ItsCloseStopsOnlyItsOwnProgram) {
  LingeringSocket socket;
  TestClient client(host);
  ASSERT_TRUE(client.Hello());
  const uint8_t byte = 0;
  client.SendRaw({&byte, 1});
  client.SendRaw({&byte, 0});
  client.SendRaw({&byte, 0}, {{socket.get()}});
  socket.Forget();
  host.Settle();
  EXPECT_TRUE(client.closed());
  ExpectOthersGoOn();
  WaitForClose();
}

TEST_F(LingeringClient, SessionThatEndsMeanwhile_CountsUntilTheCloseReturns) {
  LingeringSocket socket;
  const auto sessions = [&] {
    return host.server->services()
        .pools.FindPool(session::kDefaultPool)
        ->Left(session::Resource::kSessions);
  };
  const uint64_t left = sessions();
  {
    TestClient client(host);
    ASSERT_TRUE(client.Hello());
    auto alloc = TestClient::Request<rocegw_alloc_pd>(ROCEGW_MSG_ALLOC_PD);
    alloc.context = client.OpenContext();
    ASSERT_TRUE(client.Send(alloc, socket.get()));
    socket.Forget();
    host.Settle();
  }
  host.Settle();
  EXPECT_EQ(host.server->session_count(), 1u);
  EXPECT_EQ(sessions(), left - 1) << "the blocked call counts as a session";
  WaitForClose();
  while (sessions() != left) host.RunControl();
}

TEST_F(HostileClient, MemoryDescriptorThatIsSomethingElse) {
  int pipe_ends[2];
  ASSERT_EQ(::pipe2(pipe_ends, O_CLOEXEC), 0);
  const UniqueFd reader(pipe_ends[0]);
  const UniqueFd writer(pipe_ends[1]);
  const UniqueFd read_only(::open("/proc/self/mem", O_RDONLY | O_CLOEXEC));
  const UniqueFd other_proc(::open("/proc/self/comm", O_RDWR | O_CLOEXEC));
  const UniqueFd folder(::open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const UniqueFd file(::open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  for (const int fd : {writer.get(), read_only.get(), other_proc.get(), folder.get(), file.get()}) {
    TestClient client(host);
    EXPECT_FALSE(client.Hello(fd));
    EXPECT_EQ(client.error(), EINVAL);
    ExpectGone(client, "memory descriptor");
  }
}

TEST_F(HostileClient, FaultSeenByAWorker) {
  TestClient client(host);
  ASSERT_TRUE(client.Hello());
  const uint32_t context = client.OpenContext();
  client.CreateQp(client.AllocPd(context), client.CreateCq(context).handle);
  const SessionId id{host.workers[0]->sessions.rbegin()->first};
  host.workers[0]->Raise({0, worker::SessionStopped{id, "SQ index out of range"}});
  host.workers[1]->Raise({0, worker::SessionStopped{id, "again"}});
  ExpectGone(client, "SQ index out of range");
  EXPECT_FALSE(host.Logged("again"));
}

TEST_F(HostileClient, RequestsWithoutReadingAnswers_AreNotReadEndlessly) {
  TestClient client(host);
  ASSERT_TRUE(client.Hello());
  auto query = TestClient::Request<rocegw_query_gids>(ROCEGW_MSG_QUERY_GIDS);
  size_t sent = 0;
  // The socket fills up, since the daemon stops reading.
  for (int round = 0; round < 3; ++round) {
    while (client.Send(query)) ++sent;
    host.Settle();
  }
  EXPECT_LT(sent, 5000u);
  // All of them are answered once the client reads.
  size_t answered = 0;
  for (int idle = 0; idle < 3;) {
    if (client.Receive()) {
      ++answered;
      idle = 0;
    } else {
      host.Settle();
      ++idle;
    }
  }
  EXPECT_EQ(answered, sent);
}

TEST_F(HostileClient, FasterThanAllowed_IsReadLater) {
  session::Options options;
  options.session.request_burst = 5;
  options.session.requests_per_second = 1000;
  SessionHost slow(1, options);
  TestClient client(slow);
  ASSERT_TRUE(client.Hello());
  const TimePoint start = ControlLoop::Now();
  constexpr size_t kRequests = 30;
  auto query = TestClient::Request<rocegw_query_gids>(ROCEGW_MSG_QUERY_GIDS);
  for (size_t i = 0; i < kRequests; ++i) ASSERT_TRUE(client.Send(query));
  size_t answered = 0;
  while (answered < kRequests) {
    slow.loop.RunOnce(Milliseconds(50));
    while (client.Receive()) ++answered;
  }
  EXPECT_GE((ControlLoop::Now() - start).ns, Milliseconds(20).ns);
}

TEST_F(HostileClient, Garbage_NeverHurtsAnybodyElse) {
  Random random(TestSeed(11));
  for (int i = 0; i < 300; ++i) {
    TestClient client(host);
    if (random.Coin()) client.Hello();
    for (int k = 0; k < 5; ++k) {
      std::vector<uint8_t> bytes = random.Bytes(random.Between(1, 300));
      if (bytes.size() >= sizeof(rocegw_request)) {
        rocegw_request header{static_cast<uint32_t>(random.Below(90)),
                              static_cast<uint32_t>(bytes.size()), 1};
        std::memcpy(bytes.data(), &header, sizeof header);
      }
      client.SendRaw(bytes);
      host.Settle();
    }
    client.Disconnect();
    host.Settle();
  }
  EXPECT_EQ(host.server->session_count(), 1u);
  EXPECT_EQ(host.LinkedObjects(), before);
}

// Dies between any two steps of control thread and workers, with requests in progress.
TEST_F(HostileClient, DeathAtAnyPoint_LeavesNothing) {
  Random random(TestSeed(12));
  const size_t descriptors = OpenDescriptors();
  const auto& usage = host.server->services().pools.gateway();
  const uint64_t segment = usage.used(session::Resource::kSegmentBytes);
  for (int life = 0; life < 200; ++life) {
    {
      TestClient client(host);
      ASSERT_TRUE(client.Hello());
      const uint32_t context = client.OpenContext();
      const uint32_t pd = client.AllocPd(context);
      const uint32_t cq =
          client.CreateCq(context, 16, random.Coin() ? client.CreateChannel(context) : 0).handle;
      client.CreateQp(pd, cq);
      client.RegMr(pd, 4096, 64);
      // Several requests at once, then a few single steps, then death.
      auto qp = TestClient::Request<rocegw_create_qp>(ROCEGW_MSG_CREATE_QP);
      qp.pd = pd;
      qp.send_cq = qp.recv_cq = cq;
      qp.type = ROCEGW_QPT_RC;
      auto mr = TestClient::Request<rocegw_reg_mr>(ROCEGW_MSG_REG_MR);
      mr.pd = pd;
      mr.address = 4096;
      mr.length = 64;
      auto destroy = TestClient::Request<rocegw_object_request>(ROCEGW_MSG_DESTROY_QP);
      destroy.handle = 1;
      auto close = TestClient::Request<rocegw_object_request>(ROCEGW_MSG_CLOSE_CONTEXT);
      close.handle = context;
      for (int k = 0; k < 4; ++k) {
        switch (random.Below(4)) {
          case 0:
            client.Send(qp);
            break;
          case 1:
            client.Send(mr);
            break;
          case 2:
            client.Send(destroy);
            break;
          default:
            client.Send(close);
            break;
        }
      }
      for (size_t steps = random.Below(12); steps != 0; --steps) {
        if (random.Coin()) {
          host.RunControl();
        } else {
          host.workers[random.Below(2)]->Pump(1);
        }
      }
    }
    host.Settle();
    ASSERT_EQ(host.server->session_count(), 1u);
    ASSERT_EQ(host.LinkedObjects(), before);
  }
  EXPECT_EQ(OpenDescriptors(), descriptors);
  EXPECT_EQ(usage.used(session::Resource::kSegmentBytes), segment);
  EXPECT_EQ(usage.used(session::Resource::kQps), 0u);
  EXPECT_EQ(usage.used(session::Resource::kMrs), 0u);
  EXPECT_EQ(usage.used(session::Resource::kCqs), 0u);
  EXPECT_EQ(usage.used(session::Resource::kPds), 0u);
  EXPECT_EQ(usage.used(session::Resource::kRegisteredBytes), 0u);
  EXPECT_EQ(host.server->services().keys.in_use(), 0u);
  EXPECT_EQ(host.server->services().qpns.in_use(), 0u);
}

// A forked child keeps the connection open; the session still ends with the process that made it.
TEST_F(HostileClient, KilledWhileAChildKeepsTheSocket) {
  int pids[2];
  ASSERT_EQ(::pipe(pids), 0);
  // SO_PEERCRED names the creator of a pair, so a child must connect by itself.
  const std::string path = "/tmp/rocegw-killed-" + std::to_string(::getpid());
  ASSERT_TRUE(host.server->Listen({path}).ok());
  const pid_t child = ::fork();
  if (child == 0) {
    const int socket = ::socket(AF_UNIX, SOCK_SEQPACKET, 0);
    sockaddr_un to{};
    to.sun_family = AF_UNIX;
    std::memcpy(to.sun_path, path.data(), path.size());
    if (::connect(socket, reinterpret_cast<const struct sockaddr*>(&to), sizeof to) != 0)
      ::_exit(1);
    rocegw_hello hello{};
    hello.header = {ROCEGW_MSG_HELLO, sizeof hello, 1};
    hello.magic = ROCEGW_ABI_MAGIC;
    hello.major = ROCEGW_ABI_MAJOR;
    (void)!::send(socket, &hello, sizeof hello, 0);
    const pid_t grandchild = ::fork();
    if (grandchild == 0) {
      ::pause();
      ::_exit(0);
    }
    (void)!::write(pids[1], &grandchild, sizeof grandchild);
    ::pause();
    ::_exit(0);
  }
  pid_t grandchild = 0;
  ASSERT_EQ(::read(pids[0], &grandchild, sizeof grandchild),
            static_cast<ssize_t>(sizeof grandchild));
  host.Settle();
  ASSERT_EQ(host.server->session_count(), 2u);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  host.Settle();
  EXPECT_EQ(host.server->session_count(), 1u);
  EXPECT_TRUE(host.Logged("process has ended"));
  ::kill(grandchild, SIGKILL);
  ::close(pids[0]);
  ::close(pids[1]);
}

}  // namespace
}  // namespace rocegw::testing
