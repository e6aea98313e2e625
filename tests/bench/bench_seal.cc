// SPDX-License-Identifier: Apache-2.0
// Costs of a channel's datagram: ICRC with a copy, as every frame has it, and beside it the tag
// (AES-GMAC) and encryption (AES-GCM) of a sealed one, both ways, for 1 KiB and 4 KiB of data.
#include <benchmark/benchmark.h>

#include <cstring>
#include <vector>

#include "gateway/cipher/openssl_ciphers.h"
#include "gateway/wire/crc/icrc.h"

namespace rocegw {
namespace {

using benchmark::DoNotOptimize;
using benchmark::State;

constexpr size_t kHeader = 64;
constexpr size_t kFrame = 48;  // header of a WRITE

std::unique_ptr<FrameKey> Key() {
  const std::vector<uint8_t> salt(32, 1);
  const std::vector<uint8_t> info(64, 2);
  return cipher::OpensslCiphers().Derive({1, 2}, salt, info);
}

struct Frame {
  explicit Frame(const State& state)
      : data(static_cast<size_t>(state.range(0)), 7), content(kFrame + data.size(), 9) {}
  std::vector<uint8_t> data;
  std::vector<uint8_t> content;
  std::vector<uint8_t> header = std::vector<uint8_t>(kHeader, 3);
  std::array<uint8_t, FrameKey::kTagLength> tag{};
};

void IcrcAndCopy(State& state) {
  Frame frame(state);
  for (auto _ : state) {
    uint32_t crc = wire::CrcUpdate(~0u, std::span(frame.content).first(kFrame));
    crc = wire::CrcCopy(crc, frame.content.data() + kFrame, frame.data.data(), frame.data.size());
    DoNotOptimize(crc);
  }
}

void Seal(State& state, bool encrypt) {
  Frame frame(state);
  const std::unique_ptr<FrameKey> key = Key();
  uint64_t sequence = 0;
  for (auto _ : state) {
    if (!key->Seal(++sequence, frame.header, frame.content, encrypt, frame.tag))
      state.SkipWithError("not sealed");
  }
}

void Open(State& state, bool encrypt) {
  Frame frame(state);
  const std::unique_ptr<FrameKey> key = Key();
  std::vector<uint8_t> plain(frame.content.size());
  if (!key->Seal(1, frame.header, frame.content, encrypt, frame.tag))
    state.SkipWithError("not sealed");
  for (auto _ : state) {
    if (!key->Open(1, frame.header, frame.content, frame.tag, encrypt ? plain.data() : nullptr))
      state.SkipWithError("not opened");
  }
}

void GmacSeal(State& state) { Seal(state, false); }
void GmacOpen(State& state) { Open(state, false); }
void GcmSeal(State& state) { Seal(state, true); }
void GcmOpen(State& state) { Open(state, true); }
void DeriveKey(State& state) {
  for (auto _ : state) DoNotOptimize(Key());
}

BENCHMARK(IcrcAndCopy)->Arg(1024)->Arg(4096);
BENCHMARK(GmacSeal)->Arg(1024)->Arg(4096);
BENCHMARK(GmacOpen)->Arg(1024)->Arg(4096);
BENCHMARK(GcmSeal)->Arg(1024)->Arg(4096);
BENCHMARK(GcmOpen)->Arg(1024)->Arg(4096);
BENCHMARK(DeriveKey);

}  // namespace
}  // namespace rocegw

BENCHMARK_MAIN();
