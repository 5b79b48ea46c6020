// SPDX-License-Identifier: Apache-2.0
#include "harness/guarded_buffer.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace qkcts {
namespace {

// What the fault handler says about `touch`, done in a child process.
template <class Touch>
FaultRecord fault_of(const Touch& touch) {
  void* const memory = mmap(nullptr, sizeof(FaultRecord), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto* const record = new (memory) FaultRecord();
  const pid_t child = fork();
  if (child == 0) {
    install_fault_handler(record);
    touch();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  const FaultRecord result = *record;
  EXPECT_EQ(result.kind != FaultKind::none, WIFSIGNALED(status));
  munmap(memory, sizeof(FaultRecord));
  return result;
}

TEST(GuardedBuffer, EndAlignedBufferTouchesTheUpperGuard) {
  GuardedBuffer buffer("b", 100, 4, Placement::end_aligned);
  std::memset(buffer.data(), 1, buffer.size());
  EXPECT_EQ(buffer.damage(), std::nullopt);
  EXPECT_EQ(fault_of([&] { buffer.data()[99] = std::byte{2}; }).kind, FaultKind::none);
  const FaultRecord fault = fault_of([&] { buffer.data()[100] = std::byte{2}; });
  EXPECT_EQ(fault.kind, FaultKind::behind_end);
  EXPECT_EQ(fault.offset, 100);
  EXPECT_EQ(fault.size, 100);
  EXPECT_STREQ(fault.buffer, "b");
#if defined(__x86_64__)
  EXPECT_EQ(fault.access, FaultAccess::write);
#endif
}

TEST(GuardedBuffer, StartAlignedBufferTouchesTheLowerGuard) {
  GuardedBuffer buffer("b", 100, 4, Placement::start_aligned);
  const FaultRecord fault = fault_of([&] {
    volatile std::byte* const data = buffer.data();
    const std::byte read = data[-1];
    static_cast<void>(read);
  });
  EXPECT_EQ(fault.kind, FaultKind::before_start);
  EXPECT_EQ(fault.offset, -1);
}

TEST(GuardedBuffer, FarAccessStillMeetsTheGuard) {
  GuardedBuffer buffer("b", 4096, 4, Placement::start_aligned);
  EXPECT_EQ(fault_of([&] { buffer.data()[4096 + 1000000] = std::byte{1}; }).kind, FaultKind::behind_end);
  EXPECT_EQ(fault_of([&] { buffer.data()[-1000000] = std::byte{1}; }).kind, FaultKind::before_start);
}

TEST(GuardedBuffer, CanariesTellWhatNoGuardSees) {
  GuardedBuffer end("e", 100, 4, Placement::end_aligned);
  end.data()[-1] = std::byte{0};
  EXPECT_EQ(end.damage(), GuardedSide::before_start);
  GuardedBuffer start("s", 100, 4, Placement::start_aligned);
  start.data()[100] = std::byte{0};
  EXPECT_EQ(start.damage(), GuardedSide::behind_end);
}

// Memory of a buffer that is gone serves the next one: what lies behind the end of a smaller one is closed again, and
// of what the larger one held nothing is taken for a canary.
TEST(GuardedBuffer, ASmallerBufferInTheMemoryOfALargerOneIsGuardedAsWell) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::byte* before = nullptr;
  {
    GuardedBuffer larger("l", 4 * page, 4, Placement::start_aligned);
    std::memset(larger.data(), 1, larger.size());
    larger.make_read_only();
    before = larger.data();
  }
  GuardedBuffer smaller("s", 2 * page - 4, 4, Placement::end_aligned);
  EXPECT_EQ(smaller.data() - 4, before);  // else this test shows nothing
  EXPECT_EQ(smaller.damage(), std::nullopt);
  EXPECT_EQ(fault_of([&] { smaller.data()[0] = std::byte{2}; }).kind, FaultKind::none);
  for (const std::size_t behind : {2 * page - 4, 4 * page - 5, 5 * page})
    EXPECT_EQ(fault_of([&] { smaller.data()[behind] = std::byte{1}; }).kind, FaultKind::behind_end) << behind;
  EXPECT_EQ(fault_of([&] { smaller.data()[-5] = std::byte{1}; }).kind, FaultKind::before_start);
}

TEST(GuardedBuffer, WriteToReadOnlyMemoryIsReportedAsSuch) {
  GuardedBuffer buffer("input q", 64, 4, Placement::end_aligned);
  buffer.make_read_only();
  const FaultRecord fault = fault_of([&] { buffer.data()[5] = std::byte{1}; });
  EXPECT_EQ(fault.kind, FaultKind::read_only);
  EXPECT_EQ(fault.offset, 5);
}

TEST(GuardedBuffer, AlignmentLeavesWatchedSlackBehindTheEnd) {
  GuardedBuffer buffer("b", 100, 64, Placement::end_aligned);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 64, 0u);
  EXPECT_EQ(buffer.damage(), std::nullopt);
  buffer.data()[100] = std::byte{0};
  EXPECT_EQ(buffer.damage(), GuardedSide::behind_end);
}

TEST(GuardedBuffer, OtherAddressesAreNobodysBuffer) {
  const auto size = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* const closed = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(closed, MAP_FAILED);
  EXPECT_EQ(fault_of([&] { *static_cast<volatile int*>(closed) = 1; }).kind, FaultKind::elsewhere);
  munmap(closed, size);
}

}  // namespace
}  // namespace qkcts
