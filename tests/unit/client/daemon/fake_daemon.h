// SPDX-License-Identifier: Apache-2.0
// Daemon for tests of the library: speaks the attach protocol on a real socket from a thread of the
// test, hands out shared memory, records every request byte for byte, and changes rings and event
// channels as the test says. It has no network: the test writes completions.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "gateway/abi/rocegw_abi.h"

namespace rocegw::testing {

struct RecordedRequest {
  uint32_t type = 0;
  std::vector<uint8_t> bytes;
  bool had_descriptor = false;

  template <typename T>
  T As() const {
    T value{};
    __builtin_memcpy(&value, bytes.data(),
                     bytes.size() < sizeof value ? bytes.size() : sizeof value);
    return value;
  }
};

// Chunk as the daemon maps it.
struct FakeChunk {
  int fd = -1;
  uint8_t* base = nullptr;
  uint64_t size = 0;
  uint64_t used = 0;
  bool read_only = false;
};

struct FakeCq {
  rocegw_cq_reply reply{};
  uint32_t handle = 0;
  uint64_t cookie = 0;
  uint32_t channel = 0;
  uint32_t entries = 0;
  rocegw_cq_control* control = nullptr;
  rocegw_cqe* rings = nullptr;
  std::vector<uint32_t> produced;  // per worker
};

inline constexpr uint32_t kFakeSrqNumber = 0x515151;

struct FakeSrq {
  uint32_t handle = 0;
  uint64_t cookie = 0;
  rocegw_create_srq request{};
  rocegw_srq_reply reply{};
  uint32_t limit = 0;
  rocegw_srq_control* control = nullptr;
  uint32_t* order = nullptr;
  uint8_t* slots = nullptr;
  uint8_t* payload = nullptr;

  rocegw_recv_wqe* Receive(uint32_t slot) const {
    return reinterpret_cast<rocegw_recv_wqe*>(slots +
                                              size_t{slot} * rocegw_rq_stride(reply.max_sge));
  }
};

struct FakeQp {
  uint32_t handle = 0;
  uint64_t cookie = 0;
  rocegw_create_qp request{};
  rocegw_qp_reply reply{};
  rocegw_qp_attr attr{};
  rocegw_qp_control* control = nullptr;
  rocegw_qp_status* status = nullptr;
  uint8_t* sq = nullptr;
  uint8_t* sq_payload = nullptr;
  uint8_t* rq = nullptr;
  uint8_t* rq_payload = nullptr;
  rocegw_doorbell_page* doorbell = nullptr;

  rocegw_send_wqe* SendSlot(uint32_t index) const;
  rocegw_sge* SendSges(uint32_t index) const;
  uint8_t* SendPayload(uint32_t index) const;
  uint8_t* ReceivePayload(uint32_t index) const;
  bool DoorbellRang() const;
};

// Memory that was moved to the daemon, as the daemon maps it.
struct FakeRegion {
  uint32_t handle = 0;
  uint64_t address = 0;
  uint64_t length = 0;
  int fd = -1;
  uint8_t* base = nullptr;
};

struct FakeOptions {
  uint32_t workers = 2;
  uint32_t devices = 1;
  uint32_t gids = 3;
  uint32_t payload_stride = 256;
  bool receive_payload = true;
  bool placement = false;  // memory placement extensions
  uint32_t major = ROCEGW_ABI_MAJOR;
  uint32_t minor = ROCEGW_ABI_MINOR;
  uint32_t welcome_flags = 0;
  bool sysfs = true;        // show a tree, which has only directories
  std::string socket_path;  // empty: a new one below /tmp
};

class FakeDaemon {
 public:
  explicit FakeDaemon(FakeOptions options = {});
  ~FakeDaemon();
  FakeDaemon(const FakeDaemon&) = delete;
  FakeDaemon& operator=(const FakeDaemon&) = delete;

  const std::string& socket_path() const { return path_; }

  // Stops answering and closes every connection and event channel, like a daemon that dies.
  void Die();

  // Makes requests of one type fail with this error until it is set to 0.
  void Fail(uint32_t type, int error);
  // Replaces the answer of a type; the bytes are a whole reply, whose header is filled in.
  using Answer = std::function<std::vector<uint8_t>(const RecordedRequest& request)>;
  void OnRequest(uint32_t type, Answer answer);

  // Holds answers back until there are so many, then sends them together; once.
  void HoldAnswers(size_t count);

  std::vector<RecordedRequest> Requests(uint32_t type) const;
  // Returns the types of all requests, in order of arrival.
  std::vector<uint32_t> History() const;
  RecordedRequest Last(uint32_t type) const;
  size_t connections() const;
  // Returns how many of those were closed by their client.
  size_t hangups() const;
  bool WaitForHangups(size_t count);

  FakeQp Qp(uint32_t qpn) const;
  FakeQp LastQp() const;
  FakeCq Cq(uint32_t handle) const;
  FakeSrq Srq(uint32_t handle) const;
  // Returns existing regions, oldest first.
  std::vector<FakeRegion> Regions() const;
  void SetNeedWakeup(uint32_t worker, bool need);
  // Returns true if the worker's eventfd was written since the last call.
  bool WasWoken(uint32_t worker);

  // Appends to a worker's ring of the CQ; fills in sequence, QPN and handle of the QP.
  void Complete(uint32_t cq, uint32_t worker, const FakeQp& qp, rocegw_cqe cqe);

  void SendEvent(uint32_t channel, const void* record, size_t size);
  void SendCompletionEvent(uint32_t cq);
  void SendAsyncEvent(const rocegw_async_event& event);
  void SendCmEvent(uint32_t channel, const rocegw_cm_event& event);

 private:
  struct Connection;

  // Requests without an answer may still be in the socket when a test checks them.
  std::unique_lock<std::recursive_mutex> LockWhenAllIsRead() const;
  void Run();
  void Serve(Connection& connection);
  std::vector<uint8_t> Respond(Connection& connection, const RecordedRequest& request, int* fd);
  void AnnounceMemory(Connection& connection);
  rocegw_location Allocate(Connection& connection, bool read_only, uint64_t bytes, void** place);
  std::vector<uint8_t> MakeCq(Connection& connection, const RecordedRequest& request);
  std::vector<uint8_t> ResizeCq(Connection& connection, const RecordedRequest& request);
  std::vector<uint8_t> ResizeSrq(Connection& connection, const RecordedRequest& request);
  std::vector<uint8_t> MakeSrq(Connection& connection, const RecordedRequest& request);
  std::vector<uint8_t> MakeQp(Connection& connection, const RecordedRequest& request);
  std::vector<uint8_t> MakeRegion(const RecordedRequest& request, int* fd);
  void DestroyRegion(uint32_t handle);
  std::vector<uint8_t> MakeObject(Connection& connection, const RecordedRequest& request, int* fd);
  void CloseAll();

  FakeOptions options_;
  std::string directory_;
  std::string path_;
  int listener_ = -1;
  int stop_ = -1;
  std::thread thread_;

  mutable std::recursive_mutex mutex_;  // recursive: answers of a test may use the daemon
  mutable std::condition_variable_any changed_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<RecordedRequest> requests_;
  struct HeldAnswer {
    int socket;
    std::vector<uint8_t> bytes;
  };
  std::vector<HeldAnswer> held_;
  size_t hold_ = 0;
  std::map<uint32_t, int> failures_;
  std::map<uint32_t, Answer> answers_;
  std::map<uint32_t, FakeCq> cqs_;
  std::map<uint32_t, FakeSrq> srqs_;
  std::map<uint32_t, FakeQp> qps_;  // by QPN
  std::map<uint32_t, FakeRegion> regions_;
  std::map<uint32_t, int> events_;  // daemon's end, by channel or context handle
  std::vector<uint32_t> contexts_;
  uint32_t next_handle_ = 1;
  uint32_t next_key_ = 0x100;
  std::map<uint32_t, uint32_t> key_of_;  // keys of memory regions, by handle
  uint32_t next_qpn_ = 0x40001;
  uint32_t last_qpn_ = 0;
  size_t accepted_ = 0;
  size_t hangups_ = 0;
  uint32_t last_peer_ = 0;
};

}  // namespace rocegw::testing
