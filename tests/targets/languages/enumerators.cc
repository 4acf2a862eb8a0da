// enumerators: of both kinds of enumerations, in a namespace.
namespace shop {
enum class Level : short { lo = -1, hi = 300 };
enum Color { blue, red };
} // namespace shop

extern "C" __attribute__((noinline)) int use(shop::Level l, shop::Color c, int n) {
    __asm__ volatile("");
    return static_cast<int>(l) + c + n;
}

int main() { return use(shop::Level::hi, shop::blue, 1) + use(shop::Level::lo, shop::red, 2) == 0; }
