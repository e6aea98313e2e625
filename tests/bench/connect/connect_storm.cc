// SPDX-License-Identifier: Apache-2.0
// Many threads that connect at once (BURST appendix A.2): `connect_storm server ADDRESS` has
// THREADS threads with INSTANCES listeners each; in `connect_storm client ADDRESS` each of THREADS
// threads connects to every listener, at most WINDOW connections under way, and then takes all of
// them down again. Unmodified librdmacm calls, a queue pair on each connection, an event channel
// per thread. Prints connections per second of both halves; fails when one connection does not come
// about.
//
// Usage: connect_storm server|client ADDRESS THREADS INSTANCES [WINDOW]
#include <arpa/inet.h>
#include <rdma/rdma_cma.h>

#include <barrier>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <latch>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr int kFirstPort = 20000;
constexpr int kTimeoutMs = 20000;
constexpr uint8_t kRetries = 7;

[[noreturn]] void Fail(const char* what) {
  std::fprintf(stderr, "connect_storm: %s: %s\n", what, std::strerror(errno));
  std::exit(1);
}

sockaddr_in At(const std::string& address, int port) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(port));
  if (inet_pton(AF_INET, address.c_str(), &to.sin_addr) != 1) Fail("address");
  return to;
}

rdma_conn_param Params() {
  rdma_conn_param param{};
  param.responder_resources = param.initiator_depth = 1;
  param.retry_count = param.rnr_retry_count = kRetries;
  return param;
}

// What all connections of a thread share.
struct Place {
  rdma_event_channel* channel = rdma_create_event_channel();
  ibv_pd* pd = nullptr;
  ibv_cq* cq = nullptr;

  Place() {
    if (channel == nullptr) Fail("rdma_create_event_channel");
  }
  void MakeQp(rdma_cm_id* id) {
    if (pd == nullptr) {
      pd = ibv_alloc_pd(id->verbs);
      cq = ibv_create_cq(id->verbs, 1, nullptr, nullptr, 0);
      if (pd == nullptr || cq == nullptr) Fail("protection domain or completion queue");
    }
    ibv_qp_init_attr attr{};
    attr.send_cq = attr.recv_cq = cq;
    attr.qp_type = IBV_QPT_RC;
    attr.cap = {1, 1, 1, 1, 0};
    if (rdma_create_qp(id, pd, &attr) != 0) Fail("rdma_create_qp");
  }
};

void Serve(const std::string& address, int first_port, int instances, std::latch& listening) {
  Place place;
  for (int i = 0; i < instances; ++i) {
    rdma_cm_id* listener = nullptr;
    sockaddr_in at = At(address, first_port + i);
    if (rdma_create_id(place.channel, &listener, nullptr, RDMA_PS_TCP) != 0 ||
        rdma_bind_addr(listener, reinterpret_cast<sockaddr*>(&at)) != 0 ||
        rdma_listen(listener, 1024) != 0) {
      Fail("listener");
    }
  }
  listening.count_down();
  for (;;) {
    rdma_cm_event* event = nullptr;
    if (rdma_get_cm_event(place.channel, &event) != 0) Fail("rdma_get_cm_event");
    rdma_cm_id* const id = event->id;
    const rdma_cm_event_type type = event->event;
    rdma_ack_cm_event(event);
    if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
      place.MakeQp(id);
      rdma_conn_param param = Params();
      if (rdma_accept(id, &param) != 0) Fail("rdma_accept");
    } else if (type == RDMA_CM_EVENT_DISCONNECTED) {
      rdma_disconnect(id);
      rdma_destroy_qp(id);
      rdma_destroy_id(id);
    } else if (type != RDMA_CM_EVENT_ESTABLISHED && type != RDMA_CM_EVENT_TIMEWAIT_EXIT) {
      std::fprintf(stderr, "connect_storm: server: %s\n", rdma_event_str(type));
      std::exit(1);
    }
  }
}

class Client {
 public:
  Client(std::string address, int listeners, int window)
      : address_(std::move(address)), listeners_(listeners), window_(window) {}

  void Connect() {
    while (established_ != listeners_) {
      while (begun_ != listeners_ && begun_ - established_ < window_) Begin();
      Take();
    }
  }
  void Disconnect() {
    size_t asked = 0;
    while (gone_ != listeners_) {
      while (asked != ids_.size() && static_cast<int>(asked) - gone_ < window_) {
        if (rdma_disconnect(ids_[asked++]) != 0) Fail("rdma_disconnect");
      }
      Take();
    }
    for (rdma_cm_id* id : ids_) {
      rdma_destroy_qp(id);
      if (rdma_destroy_id(id) != 0) Fail("rdma_destroy_id");
    }
  }

 private:
  void Begin() {
    rdma_cm_id* id = nullptr;
    sockaddr_in to = At(address_, kFirstPort + begun_);
    if (rdma_create_id(place_.channel, &id, nullptr, RDMA_PS_TCP) != 0 ||
        rdma_resolve_addr(id, nullptr, reinterpret_cast<sockaddr*>(&to), kTimeoutMs) != 0) {
      Fail("rdma_resolve_addr");
    }
    ++begun_;
  }
  void Take() {
    rdma_cm_event* event = nullptr;
    if (rdma_get_cm_event(place_.channel, &event) != 0) Fail("rdma_get_cm_event");
    rdma_cm_id* const id = event->id;
    const rdma_cm_event_type type = event->event;
    rdma_ack_cm_event(event);
    rdma_conn_param param = Params();
    switch (type) {
      case RDMA_CM_EVENT_ADDR_RESOLVED:
        if (rdma_resolve_route(id, kTimeoutMs) != 0) Fail("rdma_resolve_route");
        break;
      case RDMA_CM_EVENT_ROUTE_RESOLVED:
        place_.MakeQp(id);
        if (rdma_connect(id, &param) != 0) Fail("rdma_connect");
        break;
      case RDMA_CM_EVENT_ESTABLISHED:
        ids_.push_back(id);
        ++established_;
        break;
      case RDMA_CM_EVENT_DISCONNECTED:
        ++gone_;
        break;
      case RDMA_CM_EVENT_TIMEWAIT_EXIT:
        break;
      default:
        std::fprintf(stderr, "connect_storm: client: %s\n", rdma_event_str(type));
        std::exit(1);
    }
  }

  const std::string address_;
  const int listeners_;
  const int window_;
  Place place_;
  std::vector<rdma_cm_id*> ids_;
  int begun_ = 0;
  int established_ = 0;
  int gone_ = 0;
};

double Since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) {
    std::fprintf(stderr, "usage: connect_storm server|client ADDRESS THREADS INSTANCES [WINDOW]\n");
    return 2;
  }
  const std::string role = argv[1];
  const std::string address = argv[2];
  const int threads = std::atoi(argv[3]);
  const int instances = std::atoi(argv[4]);
  const int window = argc > 5 ? std::atoi(argv[5]) : 16;
  std::vector<std::thread> all;
  if (role == "server") {
    std::latch listening(threads);
    for (int i = 0; i < threads; ++i)
      all.emplace_back(Serve, address, kFirstPort + i * instances, instances, std::ref(listening));
    listening.wait();
    std::printf("listening\n");
    std::fflush(stdout);
    for (auto& thread : all) thread.join();
  }
  // The client has as many threads as the server.
  const int listeners = threads * instances;
  std::barrier together(threads + 1);
  for (int i = 0; i < threads; ++i) {
    all.emplace_back([&] {
      Client client(address, listeners, window);
      together.arrive_and_wait();
      client.Connect();
      together.arrive_and_wait();
      client.Disconnect();
      together.arrive_and_wait();
    });
  }
  const int connections = threads * listeners;
  together.arrive_and_wait();
  const auto begin = std::chrono::steady_clock::now();
  together.arrive_and_wait();
  const double up = Since(begin);
  together.arrive_and_wait();
  const double down = Since(begin) - up;
  for (auto& thread : all) thread.join();
  std::printf("connections %d, per second %.0f, taken down per second %.0f\n", connections,
              connections / up, connections / down);
  return 0;
}
