// SPDX-License-Identifier: Apache-2.0
// Session server with fake workers, and clients that speak the attach protocol over real sockets.
// All run in one thread: Settle runs loop and workers until no work is left.
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

  // Runs loop and workers until no work is left.
  void Settle();
  // Run only the control loop, or only the workers.
  void RunControl() { loop.RunOnce({}); }
  bool RunWorkers();

  size_t LinkedObjects() const;
  std::vector<std::string> BrokenRules() const;
  bool Logged(const std::string& part) const;
  // Returns true if an event with this text was reported.
  bool Told(const std::string& part) const;

  ControlLoop loop;
  UniqueFd control_wake;
  std::vector<std::unique_ptr<FakeWorker>> workers;
  std::vector<std::string> log;
  // Number of calls on programs' objects that a test blocks, so that Settle does not wait for them.
  size_t blocked_calls = 0;
  std::unique_ptr<session::SessionServer> server;

  static session::Device MakeDevice();
};

// Message from the daemon.
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
  // Attaches to the host through a socket pair, without greeting.
  explicit TestClient(SessionHost& host, const std::string& pool = session::kDefaultPool);
  TestClient(SessionHost& host, UniqueFd connected)
      : TestClient([&host] { host.Settle(); }, std::move(connected)) {}
  // `settle`: runs the daemon's side until no work is left.
  TestClient(std::function<void()> settle, UniqueFd connected)
      : settle_(std::move(settle)), socket_(std::move(connected)) {}

  // For a host whose loop and workers have their own threads: requests wait for answers.
  void HostHasThreads() { host_has_threads_ = true; }
  // Settles repeatedly, for answers that depend on other hosts.
  void AnswersTakeTime() { answers_take_time_ = true; }

  template <typename T>
  static T Request(uint32_t type) {
    T request{};
    request.header.type = type;
    request.header.length = sizeof request;
    return request;
  }

  // Sends bytes unchanged. Returns false if the daemon closed the connection.
  bool SendRaw(std::span<const uint8_t> bytes, std::span<const int> fds = {});
  template <typename T>
  bool Send(T request, int fd = -1) {
    request.header.request_id = next_request_++;
    const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(&request),
                                         sizeof request);
    return fd < 0 ? SendRaw(bytes) : SendRaw(bytes, {&fd, 1});
  }
  // Returns received messages except announcements, which are kept in `chunks` and `wake_fds`.
  std::optional<ClientMessage> Receive();
  bool closed();

  // Sends a request and returns its answer. error() has the result; -1: the connection is closed.
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
  // Sends a request that names one object.
  rocegw_object_reply Object(uint32_t type, uint32_t handle);
  int Modify(uint32_t qp, uint32_t mask, const rocegw_qp_attr& attr);

  // Returns the address of a location in this client's mapping.
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
  UniqueFd received_fd;  // passed with the last answer
  UniqueFd rings_wake;   // eventfd of the daemon

  void Disconnect() { socket_.Reset(); }
  // Gives the connection to the caller.
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

// Program with one of each object that queue pairs need.
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
