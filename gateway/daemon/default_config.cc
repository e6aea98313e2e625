// SPDX-License-Identifier: Apache-2.0
#include "gateway/daemon/config.h"

namespace rocegw::daemon {

std::string_view DefaultConfigText() {
  return R"(# Configuration of rocegwd. Every key is optional; shown are the defaults.
# Sizes may be written as 65536, 64KiB, 16MiB or 2GiB. Check a file with: rocegwd --check-config --config FILE

# Name of this gateway, a DNS label. Default: the host name.
# name: host-a

# Sockets and run-time files. Two gateways on one machine (in two network namespaces) need two directories.
runtime_dir: /run/rocegw

# trace, debug, info, warn, error. SIGHUP reads this key again.
log_level: info

# Data path threads; 0: a quarter of the processors, at least one.
workers: 0
# Bind worker i to the i-th allowed processor.
pin_workers: false
# How workers wait for work, and how the kernel schedules them (docs/develop/threading.md#sleeping-and-waking).
waiting:
  # adaptive: polls, yields and sleeps, by what yields cost. busy: polls only. event: sleeps after each round.
  # event_batch: sleeps after the first round without work. hybrid: polls for sleep_after_us without work, then sleeps.
  mode: adaptive
  # Mode adaptive: time without work until a worker yields its processor.
  yield_after_us: 8
  # Modes adaptive and hybrid: time without work until a worker sleeps.
  sleep_after_us: 50
  # Time slice asked of the scheduler (Linux 6.12 and later), 100 to 100000; 0: the kernel's own. A worker that wakes up
  # preempts programs with longer slices, which lowers latency and, beside other busy programs, throughput.
  slice_us: 0
  # Priority of SCHED_FIFO for workers, 1 to 99; 0: none. Needs CAP_SYS_NICE. For programs that spin on their memory
  # where processors are scarce.
  realtime_priority: 0
  # Idle processors of the machine do not halt until 100 ms after the last work, which costs energy and saves the time
  # that a wake-up takes. Needs write access to /dev/cpu_dma_latency.
  keep_processors_awake: false

# One RDMA device (rocegw0, rocegw1, ...) appears per port.
ports:
  - name: port0
    # udp: kernel sockets, needs no privilege. af_packet: DPDK on an interface shared with the kernel (CAP_NET_RAW).
    # af_xdp: AF_XDP sockets on an interface shared with the kernel (CAP_NET_RAW, CAP_NET_ADMIN, CAP_BPF).
    # pci: a network card that DPDK drives, without a kernel interface. vdev: any DPDK virtual device.
    mode: udp
    # A network interface; auto: the one of the default route, else the only one with an address.
    interface: auto
    # Mode udp: segmentation offload. auto: where the kernel does it in software, so that packet headers stay exact.
    segmentation: auto
    # Mode udp, several workers: qpn: a program in the kernel gives each packet to the worker of its queue pair. hash:
    # where the kernel may not run one, it spreads packets by address and port, and workers hand over what is not
    # theirs.
    steering: qpn
    # Mode udp: asked of the kernel for each receiving socket; more than net.core.rmem_max needs CAP_NET_ADMIN.
    receive_buffer_bytes: 8MiB
  # A port of mode pci (pci: 0000:03:00.0) or vdev has no interface to ask, so it is told what the kernel would know:
  # - name: port1
  #   mode: vdev
  #   vdev: net_memif0,role=server,socket=/run/rocegw/memif.sock
  #   mtu: 1500
  #   vlan: 7                         # default: 0, frames without a tag; an interface of the kernel has its own
  #   mac: 02:00:00:00:00:01          # default: what the device says
  #   addresses: [192.0.2.1/24]
  #   routers: [192.0.2.254]          # default: only what the prefixes of the addresses cover
  #   neighbours:                     # others are found by ARP and neighbour discovery
  #     - {address: 192.0.2.2, mac: 02:00:00:00:00:02}

# The memory placement extensions of IBTA's annex A19, FLUSH and ATOMIC WRITE. enabled: devices have them, and RC queue
# pairs use and take them, towards other gateways that have them enabled and towards RDMA devices, all of which should
# know them then; a pool may be without (memory.placement: DISABLED). by_pool: only pools have them that say
# memory.placement: ENABLED. disabled: they are refused, whatever pools say.
memory_placement: disabled

# Where programs attach. Whoever may open it can use the gateway. owner: USER, USER:GROUP or :GROUP.
# path defaults to attach.sock in runtime_dir.
attach_socket:
  path: /run/rocegw/attach.sock
  mode: 0660
  owner: ""

# Where rocegwctl asks. path defaults to grpc.sock in runtime_dir.
grpc_socket:
  path: /run/rocegw/grpc.sock
  mode: 0600
  owner: ""

# /metrics for Prometheus, /livez and /readyz. Empty address: off.
metrics:
  address: 127.0.0.1:7474

# For ports of mode af_packet, pci and vdev, and for the copy engine.
dpdk:
  # auto: use huge pages, as many as it takes, when the system has memory_mb of free ones at the start; off: never.
  huge_pages: auto
  # Memory taken of ordinary pages when huge pages are not used.
  memory_mb: 256
  # More arguments for DPDK's environment layer.
  eal_args: []

# A device that copies received payload into remapped memory (default_pool.remap) while the worker processes the next
# packets: Intel DSA by DPDK's driver idxd. One device serves one worker. The page on copy engines says how it is set
# up.
copy_engine:
  # off; auto: if it is there and faster than the processor, which is measured at start; on: in any case, and the start
  # fails without it.
  mode: off
  # Names of the devices for DPDK, in the order of the workers that use them; empty: all. dma_skeleton is a thread that
  # copies, for tests.
  devices: []
  # Shorter payload is copied by the processor. 0: from where on the engine was faster at start.
  minimum_bytes: 0

congestion:
  # Bytes in flight per connection; 0: derived from the receive buffer.
  window_bytes: 0
  # What sets the rate of connections to RNICs: dcqcn, swift, dctcp, caqm, or static (a window and nothing else).
  native: dcqcn
  # What sets the rate of channels to other gateways, of which both ends must have one: the best of these, in this
  # order.
  channel: [caqm, swift, dctcp, dcqcn, static]
  # Another one by what a worker observes: the first rule whose sign was seen in the last 10 s. Signs: cnps and
  # unmarked_loss (threshold: how many in 10 ms), delay (threshold: percent of the shortest round trip), always.
  # policy:
  #   - {sign: cnps, algorithm: dcqcn}
  #   - {sign: unmarked_loss, threshold: 10, algorithm: swift}
  #   - {sign: always, algorithm: dcqcn}
  # The same for channels; more signs: marks and hints (threshold: of 1000 acknowledged bytes). A channel keeps to what
  # both ends have.
  # channel_policy:
  #   - {sign: hints, algorithm: caqm}
  #   - {sign: marks, threshold: 1, algorithm: dctcp}
  #   - {sign: always, algorithm: swift}
  # Packets may be marked by switches (ECT) where the algorithm reacts to marks.
  ecn: true
  # Congestion notification packets to who sends data that was marked on its way here.
  cnp:
    send: true
    # Between two of one connection at least. RNICs' own value is 4.
    interval_us: 4
    dscp: 48
  # Parameters of the algorithms, by their names; docs/develop/congestion_control.md lists them.
  # dcqcn: {rpg_ai_rate: 5, rpg_hai_rate: 50}
  # swift: {target_delay: 100}

# Between this gateway and others; RDMA devices get plain RoCEv2.
gateways:
  # enabled: ask each new peer address once in ten minutes whether it is a gateway, with a management datagram that RDMA
  # devices refuse, and answer that question; disabled: take every peer for an RDMA device.
  discovery: enabled
  # enabled: let queue pairs between gateways share transport channels; disabled: plain RoCEv2 between gateways, too.
  channels: enabled
  # Channels side by side to each worker of a peer; queue pairs are divided among them, and those that ask for no order
  # leave by all. Each has a UDP source port of its own, so that networks with several paths use them.
  paths: 1
  # What gateways know each other by, six hexadecimal digits: the same on all of them, and no vendor's.
  vendor_id: "02badd"
  # Tags on discovery and on control packets of channels, made with keys that the gateways of the fleet share.
  # preferred: with peers that have a key; channels to others have no tags, and are counted. required: peers without a
  # key get plain RoCEv2. off: no tags.
  authentication: preferred
  # Tags on the frames and acknowledgements of channels, by AES-128. off: none. preferred: towards peers that make them
  # too; channels to others have none. required: peers without get plain RoCEv2, and no channel. encrypt: as required,
  # and the content is encrypted. Plain RoCEv2 is never protected. Needs key_file.
  protection: off
  # Keys of the fleet: a file of mode 0600 with 32 hexadecimal digits per line (openssl rand -hex 16). The first key
  # makes tags, up to two more only verify them. It is read again when it changes, and on SIGHUP. To replace a key
  # without a gap, add the new one below the old one on every gateway, then move it to the top everywhere, then remove
  # the old one. Or name the file that the host's agent keeps (its fleet_keys_file).
  # key_file: /etc/rocegw/fleet.key       # default: none

# The pool of every program that attaches.
default_pool:
  # false: memory of a program is only touched on a thread of its own, so that a program that blocks such accesses
  # (userfaultfd, FUSE mappings) delays nobody else; costs some throughput.
  trusted: true
  # allow, or deny: never move memory of a program onto shared pages.
  remap: allow
  # What all programs together may have.
  limits:
    sessions: 256
    qps: 65536
    cqs: 65536
    srqs: 65536
    mrs: 262144
    pds: 16384
    cm_ids: 65536
    registered_bytes: 1024GiB
    segment_bytes: 8GiB
    # Of the daemon's own heap; where the daemon has a memory limit, heap_bytes, segment_bytes and remapped_bytes
    # together must leave 512 MiB of that limit.
    heap_bytes: 8GiB
    # Of registered_bytes: pages shared with the daemon. What does not fit is registered without moving its pages.
    remapped_bytes: 1024GiB

# Tenants and pools without a controller: what a push says, with the same field names. Holds until an agent has applied
# something for the first time; then that is kept in runtime_dir and holds, also after a restart.
# static:
#   tenants:
#     - name: tenants/red
#       quota: {committed: {qps: 100}, peak: {qps: 1000, registered_bytes: 17179869184}}
#   pools:
#     # Its programs attach to RUNTIME_DIR/a/<8 hex>/<slot>/attach.sock; `rocegwctl get pools` shows the paths.
#     - name: tenants/red/pools/web
#       spec:
#         slots: 1
#         quota: {peak: {sessions: 4, connects_per_second: 50}}
#         attach: {socket_mode: 0660, socket_owner: ":users"}
#         memory: {trusted: false, remap: DENY}
)";
}

}  // namespace rocegw::daemon
