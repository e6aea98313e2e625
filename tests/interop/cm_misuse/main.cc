// SPDX-License-Identifier: Apache-2.0
// cm_misuse: calls librdmacm's functions where they cannot work, and prints what each says, a line
// a call: `name: 0`, or `name: -1 ERRNO`. An ordinary program: run on two stacks, the lines are to
// be the same. Usage: cm_misuse OWN_ADDRESS (IPv4; nothing is sent to anybody else)
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <rdma/rdma_cma.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>

namespace {

constexpr char kNobodysAddress[] = "198.51.100.77";  // RFC 5737
constexpr int kTimeoutMs = 2000;
constexpr uint16_t kPort = 17471;

sockaddr_in AddressOf(const char* text, uint16_t port = 0) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  inet_pton(AF_INET, text, &address.sin_addr);
  return address;
}
sockaddr* Generic(sockaddr_in* address) { return reinterpret_cast<sockaddr*>(address); }

const char* ErrnoName(int error) {
  const char* const name = strerrorname_np(error);
  return name != nullptr ? name : "?";
}

void Say(const char* name, int result) {
  const int error = errno;
  if (result == 0) {
    std::printf("%s: 0\n", name);
  } else {
    std::printf("%s: %d %s\n", name, result, ErrnoName(error));
  }
}

// An id of its own for each call, and what has to be before.
class Misuse {
 public:
  explicit Misuse(const char* own) : own_(own) { channel_ = rdma_create_event_channel(); }
  ~Misuse() { rdma_destroy_event_channel(channel_); }
  Misuse(const Misuse&) = delete;
  Misuse& operator=(const Misuse&) = delete;

  using Call = std::function<int(rdma_cm_id*)>;
  void Fresh(const char* name, const Call& call, rdma_port_space space = RDMA_PS_TCP) {
    rdma_cm_id* const id = Make(space);
    Report(name, id, call);
    rdma_destroy_id(id);
  }
  void Bound(const char* name, const Call& call, rdma_port_space space = RDMA_PS_TCP) {
    rdma_cm_id* const id = Make(space);
    sockaddr_in own = AddressOf(own_);
    Need("rdma_bind_addr", rdma_bind_addr(id, Generic(&own)));
    Report(name, id, call);
    rdma_destroy_id(id);
  }
  // Its address is resolved, and its route too if asked for.
  void Resolved(const char* name, bool route, const Call& call,
                rdma_port_space space = RDMA_PS_TCP) {
    rdma_cm_id* const id = Make(space);
    Resolve(id, route);
    Report(name, id, call);
    rdma_destroy_id(id);
  }
  rdma_event_channel* channel() { return channel_; }
  const char* own() const { return own_; }

 private:
  static void Need(const char* what, int result) {
    if (result == 0) return;
    std::perror(what);
    std::exit(1);
  }
  static void Report(const char* name, rdma_cm_id* id, const Call& call) {
    errno = 0;
    Say(name, call(id));
  }
  rdma_cm_id* Make(rdma_port_space space) {
    rdma_cm_id* id = nullptr;
    Need("rdma_create_id", rdma_create_id(channel_, &id, nullptr, space));
    return id;
  }
  void Expect(rdma_cm_event_type wanted) {
    rdma_cm_event* event = nullptr;
    Need("rdma_get_cm_event", rdma_get_cm_event(channel_, &event));
    if (event->event != wanted) {
      std::fprintf(stderr, "event %s (%d) where another was due\n", rdma_event_str(event->event),
                   event->status);
      std::exit(1);
    }
    rdma_ack_cm_event(event);
  }
  void Resolve(rdma_cm_id* id, bool route) {
    sockaddr_in own = AddressOf(own_, kPort);
    Need("rdma_resolve_addr", rdma_resolve_addr(id, nullptr, Generic(&own), kTimeoutMs));
    Expect(RDMA_CM_EVENT_ADDR_RESOLVED);
    if (!route) return;
    Need("rdma_resolve_route", rdma_resolve_route(id, kTimeoutMs));
    Expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
  }

  const char* own_;
  rdma_event_channel* channel_;
};

ibv_qp_init_attr QpAttr(uint32_t depth = 4) {
  ibv_qp_init_attr attr{};
  attr.cap = {depth, depth, 1, 1, 0};
  attr.qp_type = IBV_QPT_RC;
  return attr;
}

int CreateQp(rdma_cm_id* id, ibv_qp_init_attr attr) { return rdma_create_qp(id, nullptr, &attr); }
int CreateQpAndTakeItAway(rdma_cm_id* id, ibv_qp_init_attr attr) {
  const int result = CreateQp(id, attr);
  if (result == 0) rdma_destroy_qp(id);
  return result;
}
int Connect(rdma_cm_id* id, rdma_conn_param param) { return rdma_connect(id, &param); }

void Binding(Misuse& misuse) {
  const char* const own = misuse.own();
  const auto bind = [](rdma_cm_id* id, const char* address, uint16_t port) {
    sockaddr_in to = AddressOf(address, port);
    return rdma_bind_addr(id, Generic(&to));
  };
  misuse.Bound("bind twice", [&](rdma_cm_id* id) { return bind(id, own, 0); });
  misuse.Fresh("bind to nobody's address",
               [&](rdma_cm_id* id) { return bind(id, kNobodysAddress, 0); });
  misuse.Fresh("bind to no family", [](rdma_cm_id* id) {
    sockaddr none{};
    return rdma_bind_addr(id, &none);
  });
  misuse.Fresh("bind to a port that is taken", [&](rdma_cm_id* id) {
    rdma_cm_id* other = nullptr;
    if (rdma_create_id(misuse.channel(), &other, nullptr, RDMA_PS_TCP) != 0) return 1;
    if (bind(other, own, kPort) != 0 || rdma_listen(other, 1) != 0) return 2;
    const int result = bind(id, own, kPort);
    const int error = errno;
    rdma_destroy_id(other);
    errno = error;
    return result;
  });
  misuse.Resolved("bind when resolved", false, [&](rdma_cm_id* id) { return bind(id, own, 0); });
  misuse.Fresh("create id of no port space", [&](rdma_cm_id*) {
    rdma_cm_id* other = nullptr;
    return rdma_create_id(misuse.channel(), &other, nullptr, static_cast<rdma_port_space>(0x999));
  });
}

void Resolving(Misuse& misuse) {
  misuse.Fresh("resolve no address", [](rdma_cm_id* id) {
    sockaddr none{};
    return rdma_resolve_addr(id, nullptr, &none, kTimeoutMs);
  });
  misuse.Fresh("resolve from nobody's address", [&](rdma_cm_id* id) {
    sockaddr_in from = AddressOf(kNobodysAddress);
    sockaddr_in to = AddressOf(misuse.own(), kPort);
    return rdma_resolve_addr(id, Generic(&from), Generic(&to), kTimeoutMs);
  });
  misuse.Resolved("resolve an address twice", false, [&](rdma_cm_id* id) {
    sockaddr_in to = AddressOf(misuse.own(), kPort);
    return rdma_resolve_addr(id, nullptr, Generic(&to), kTimeoutMs);
  });
  misuse.Resolved("resolve a route twice", true,
                  [](rdma_cm_id* id) { return rdma_resolve_route(id, kTimeoutMs); });
}

void QueuePairs(Misuse& misuse) {
  misuse.Resolved("create a second queue pair", false, [](rdma_cm_id* id) {
    if (CreateQp(id, QpAttr()) != 0) return 1;
    const int result = CreateQp(id, QpAttr());
    const int error = errno;
    rdma_destroy_qp(id);
    errno = error;
    return result;
  });
  misuse.Resolved("create a queue pair of another type", false, [](rdma_cm_id* id) {
    ibv_qp_init_attr attr = QpAttr();
    attr.qp_type = IBV_QPT_UD;
    return CreateQpAndTakeItAway(id, attr);
  });
  misuse.Resolved(
      "create a datagram queue pair of another type", false,
      [](rdma_cm_id* id) { return CreateQpAndTakeItAway(id, QpAttr()); }, RDMA_PS_UDP);
  misuse.Resolved("create too large a queue pair", false,
                  [](rdma_cm_id* id) { return CreateQpAndTakeItAway(id, QpAttr(1 << 30)); });
  misuse.Fresh("attributes of no connection", [](rdma_cm_id* id) {
    ibv_qp_attr attr{};
    int mask = 0;
    attr.qp_state = IBV_QPS_RTR;
    return rdma_init_qp_attr(id, &attr, &mask);
  });
}

void Connecting(Misuse& misuse) {
  const auto connect = [](rdma_cm_id* id) { return Connect(id, {}); };
  misuse.Bound("connect when bound", connect);
  misuse.Resolved("connect without a route", false, connect);
  misuse.Resolved("connect with too much private data", true, [](rdma_cm_id* id) {
    static const char data[255] = "";
    rdma_conn_param param{};
    param.private_data = data;
    param.private_data_len = sizeof data;
    return Connect(id, param);
  });
  misuse.Resolved("connect with too many reads", true, [](rdma_cm_id* id) {
    rdma_conn_param param{};
    param.responder_resources = 254;
    param.initiator_depth = 254;
    return Connect(id, param);
  });
  const auto accept = [](rdma_cm_id* id) {
    rdma_conn_param param{};
    return rdma_accept(id, &param);
  };
  misuse.Bound("accept when bound", accept);
  misuse.Resolved("accept when resolved", true, accept);
  const auto reject = [](rdma_cm_id* id) { return rdma_reject(id, nullptr, 0); };
  misuse.Fresh("reject at first", reject);
  misuse.Bound("reject when bound", reject);
  const auto disconnect = [](rdma_cm_id* id) { return rdma_disconnect(id); };
  misuse.Bound("disconnect when bound", disconnect);
  misuse.Resolved("disconnect when resolved", true, disconnect);
  misuse.Fresh("establish at first", [](rdma_cm_id* id) { return rdma_establish(id); });
  misuse.Bound("notify when bound",
               [](rdma_cm_id* id) { return rdma_notify(id, IBV_EVENT_COMM_EST); });
}

void Listening(Misuse& misuse) {
  misuse.Fresh("listen unbound", [](rdma_cm_id* id) { return rdma_listen(id, 1); });
  misuse.Bound("listen twice", [](rdma_cm_id* id) {
    if (rdma_listen(id, 1) != 0) return 1;
    return rdma_listen(id, 1);
  });
  misuse.Resolved("listen when resolved", false, [](rdma_cm_id* id) { return rdma_listen(id, 1); });
  misuse.Bound("connect when listening", [](rdma_cm_id* id) {
    if (rdma_listen(id, 1) != 0) return 1;
    return Connect(id, {});
  });
  misuse.Bound("get a request of a shared channel", [](rdma_cm_id* id) {
    rdma_cm_id* request = nullptr;
    return rdma_get_request(id, &request);
  });
}

void Options(Misuse& misuse) {
  const auto set = [](int level, int option, size_t length) {
    return [=](rdma_cm_id* id) {
      int value = 1;
      return rdma_set_option(id, level, option, &value, length);
    };
  };
  misuse.Fresh("option of no level", set(77, 0, 4));
  misuse.Fresh("no such option", set(RDMA_OPTION_ID, 77, 4));
  misuse.Fresh("type of service, no byte", set(RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, 4));
  misuse.Fresh("reuse of addresses", set(RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, 4));
  misuse.Fresh("reuse of addresses, a byte", set(RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, 1));
  misuse.Bound("reuse of addresses when bound", set(RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, 4));
  misuse.Bound("one family when bound", set(RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, 4));
  misuse.Fresh("acknowledgement timeout, four bytes",
               set(RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, 4));
  misuse.Fresh("a path of no size", set(RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, 3));
}

void Groups(Misuse& misuse) {
  const auto join = [](rdma_cm_id* id) {
    sockaddr_in group = AddressOf("239.1.2.3");
    return rdma_join_multicast(id, Generic(&group), nullptr);
  };
  misuse.Fresh("join unbound", join, RDMA_PS_UDP);
  misuse.Bound(
      "leave what was not joined",
      [](rdma_cm_id* id) {
        sockaddr_in group = AddressOf("239.1.2.3");
        return rdma_leave_multicast(id, Generic(&group));
      },
      RDMA_PS_UDP);
}

void Events(Misuse& misuse) {
  misuse.Fresh("event of an idle channel", [&](rdma_cm_id*) {
    const int flags = fcntl(misuse.channel()->fd, F_GETFL);
    fcntl(misuse.channel()->fd, F_SETFL, flags | O_NONBLOCK);
    rdma_cm_event* event = nullptr;
    const int result = rdma_get_cm_event(misuse.channel(), &event);
    const int error = errno;
    fcntl(misuse.channel()->fd, F_SETFL, flags);
    errno = error;
    return result;
  });
  misuse.Fresh("acknowledge no event", [](rdma_cm_id*) { return rdma_ack_cm_event(nullptr); });
  misuse.Fresh("no place for an event",
               [&](rdma_cm_id*) { return rdma_get_cm_event(misuse.channel(), nullptr); });
  misuse.Fresh("ports at first", [](rdma_cm_id* id) {
    return rdma_get_src_port(id) == 0 && rdma_get_dst_port(id) == 0 ? 0 : 1;
  });
}

// An event that nobody has read goes along with its id, and that of another stays.
void Migrating(Misuse& misuse) {
  misuse.Fresh("migrate to where it is",
               [&](rdma_cm_id* id) { return rdma_migrate_id(id, misuse.channel()); });
  misuse.Fresh("migrate with an unread event", [&](rdma_cm_id* id) {
    rdma_event_channel* const other = rdma_create_event_channel();
    rdma_cm_id* stays = nullptr;
    if (rdma_create_id(misuse.channel(), &stays, nullptr, RDMA_PS_TCP) != 0) return 1;
    sockaddr_in to = AddressOf(misuse.own(), kPort);
    for (rdma_cm_id* resolved : {id, stays}) {
      if (rdma_resolve_addr(resolved, nullptr, Generic(&to), kTimeoutMs) != 0) return 2;
    }
    pollfd ready{misuse.channel()->fd, POLLIN, 0};
    if (poll(&ready, 1, kTimeoutMs) != 1) return 3;
    if (rdma_migrate_id(id, other) != 0) return 4;
    for (rdma_cm_id* resolved : {id, stays}) {
      rdma_cm_event* event = nullptr;
      if (rdma_get_cm_event(resolved->channel, &event) != 0) return 5;
      const bool right = event->id == resolved && event->event == RDMA_CM_EVENT_ADDR_RESOLVED;
      rdma_ack_cm_event(event);
      if (!right) return 6;
    }
    // Back again, for the channel to be destroyed.
    if (rdma_migrate_id(id, misuse.channel()) != 0) return 7;
    rdma_destroy_id(stays);
    rdma_destroy_event_channel(other);
    return 0;
  });
  misuse.Fresh("migrate to a channel of its own with an unread event", [&](rdma_cm_id* id) {
    sockaddr_in to = AddressOf(misuse.own(), kPort);
    if (rdma_resolve_addr(id, nullptr, Generic(&to), kTimeoutMs) != 0) return 1;
    pollfd ready{misuse.channel()->fd, POLLIN, 0};
    if (poll(&ready, 1, kTimeoutMs) != 1) return 2;
    if (rdma_migrate_id(id, nullptr) != 0) return 3;
    rdma_cm_event* event = nullptr;
    if (rdma_get_cm_event(id->channel, &event) != 0) return 4;
    const bool right = event->id == id && event->event == RDMA_CM_EVENT_ADDR_RESOLVED;
    rdma_ack_cm_event(event);
    if (!right) return 5;
    return rdma_migrate_id(id, misuse.channel());
  });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: cm_misuse OWN_ADDRESS\n");
    return 2;
  }
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  Misuse misuse(argv[1]);
  for (const auto group :
       {Binding, Resolving, QueuePairs, Connecting, Listening, Options, Groups, Events, Migrating})
    group(misuse);
  return 0;
}
