// SPDX-License-Identifier: Apache-2.0
// A session server with fake workers, and clients that speak the attach protocol to it over real
// sockets; all in one thread: Settle runs everything until nothing happens any more.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gateway/abi/rocegw_abi.h"
#include "gateway/base/unique_fd.h"
#include "gateway/session/session_server.h"
#include "tests/support/session/fake_worker.h"

namespace rocegw::testing {

class SessionHost {
 public:
  explicit SessionHost(size_t workers = 2, session::Options options = {},
                       size_t ring_capacity = 4096,
                       std::vector<session::Device> devices = {MakeDevice()},
                       session::SourceLookup lookup = session::SourceByKernel);
  ~SessionHost();

  // Until loop and workers have nothing left to do.
  void Settle();
  // Only the control thread's turn, or only the workers'.
  void RunControl() { loop.RunOnce({}); }
  bool RunWorkers();

  size_t LinkedObjects() const;
  std::vector<std::string> BrokenRules() const;
  bool Logged(const std::string& part) const;
  // An event that says so.
  bool Told(const std::string& part) const;

  session::ControlLoop loop;
  UniqueFd control_wake;
  std::vector<std::unique_ptr<FakeWorker>> workers;
  std::vector<std::string> log;
  // Calls on programs' objects that Settle does not wait for: a test blocks them.
  size_t blocked_calls = 0;
  std::unique_ptr<session::SessionServer> server;

  static session::Device MakeDevice();
};

// One message from the daemon.
struct ClientMessage {
  std::vector<uint8_t> bytes;
  UniqueFd fd;

  rocegw_reply header() const {
    rocegw_reply reply{};
    std::memcpy(&reply, bytes.data(), std::min(bytes.size(), sizeof reply));
    return reply;
  }
};

class TestClient {
 public:
  // Attached to the host through a socket pair; not greeted yet.
  explicit TestClient(SessionHost& host, const std::string& pool = session::kDefaultPool);
  TestClient(SessionHost& host, UniqueFd connected)
      : TestClient([&host] { host.Settle(); }, std::move(connected)) {}
  // settle: runs whoever answers, until nothing happens any more.
  TestClient(std::function<void()> settle, UniqueFd connected)
      : settle_(std::move(settle)), socket_(std::move(connected)) {}

  // The host's loop and workers run in threads of their own: answers are waited for.
  void HostHasThreads() { host_has_threads_ = true; }
  // Answers may depend on others than the host, and need it to settle more than once.
  void AnswersTakeTime() { answers_take_time_ = true; }

  template <typename T>
  static T Request(uint32_t type) {
    T request{};
    request.header.type = type;
    request.header.length = sizeof request;
    return request;
  }

  // Sends as it is. False when the daemon has closed the connection.
  bool SendRaw(std::span<const uint8_t> bytes, std::span<const int> fds = {});
  template <typename T>
  bool Send(T request, int fd = -1) {
    request.header.request_id = next_request_++;
    const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(&request),
                                         sizeof request);
    return fd < 0 ? SendRaw(bytes) : SendRaw(bytes, {&fd, 1});
  }
  // What has come and is no announcement; announcements are kept in chunks and wake_fds.
  std::optional<ClientMessage> Receive();
  bool closed();

  // Request and answer. error() tells how it went; -1 when the connection is gone.
  template <typename Reply, typename T>
  Reply Call(T request, int fd = -1) {
    Reply reply{};
    error_ = -1;
    if (!Send(request, fd)) return reply;
    auto message = Answer();
    if (!message) return reply;
    error_ = message->header().error;
    std::memcpy(&reply, message->bytes.data(), std::min(message->bytes.size(), sizeof reply));
    received_fd = std::move(message->fd);
    return reply;
  }
  int error() const { return error_; }

  bool Hello(int memory_fd = -1);
  uint32_t OpenContext(uint32_t device = 0);
  uint32_t AllocPd(uint32_t context);
  uint32_t CreateChannel(uint32_t context);
  rocegw_mr_reply RegMr(uint32_t pd, uint64_t address, uint64_t length, uint32_t access = 7,
                        uint32_t region = 0);
  rocegw_cq_reply CreateCq(uint32_t context, uint32_t entries = 16, uint32_t channel = 0);
  static rocegw_create_qp QpRequest(uint32_t pd, uint32_t cq, uint32_t type = ROCEGW_QPT_RC,
                                    uint32_t depth = 16);
  rocegw_qp_reply CreateQp(uint32_t pd, uint32_t cq, uint32_t type = ROCEGW_QPT_RC,
                           uint32_t depth = 16);
  // A request that names one object.
  rocegw_object_reply Object(uint32_t type, uint32_t handle);
  int Modify(uint32_t qp, uint32_t mask, const rocegw_qp_attr& attr);

  // Where a location lies in this client's mapping.
  uint8_t* At(const rocegw_location& location);

  struct Chunk {
    UniqueFd fd;
    bool read_only = false;
    uint64_t size = 0;
    uint8_t* base = nullptr;
  };
  std::map<uint32_t, Chunk> chunks;
  std::map<uint32_t, UniqueFd> wake_fds;  // by worker
  std::map<uint32_t, rocegw_location> lines;
  UniqueFd received_fd;  // of the last answer

  void Disconnect() { socket_.Reset(); }
  // The connection goes on elsewhere.
  UniqueFd Release() { return std::move(socket_); }
  ~TestClient();
  TestClient(const TestClient&) = delete;
  TestClient& operator=(const TestClient&) = delete;

 private:
  void Announced(ClientMessage message);
  std::optional<ClientMessage> Answer();

  std::function<void()> settle_;
  UniqueFd socket_;
  bool host_has_threads_ = false;
  bool answers_take_time_ = false;
  uint64_t next_request_ = 1;
  int error_ = 0;
};

// A program with one of everything that queue pairs need.
struct TestProgram {
  explicit TestProgram(SessionHost& host, const std::string& pool = session::kDefaultPool)
      : client(host, pool) {
    EXPECT_TRUE(client.Hello());
    context = client.OpenContext();
    pd = client.AllocPd(context);
    cq = client.CreateCq(context).handle;
  }

  TestClient client;
  uint32_t context = 0;
  uint32_t pd = 0;
  uint32_t cq = 0;
};

}  // namespace rocegw::testing
