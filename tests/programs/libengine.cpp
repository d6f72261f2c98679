// A library whose work is done by a virtual function, which no call through a table of imports leads to.
struct Engine {
    virtual unsigned long run(unsigned long steps);
};

unsigned long Engine::run(unsigned long steps)
{
    volatile unsigned long value = steps;
    for (unsigned long step = 0; step < steps; step++)
        value = value * 6364136223846793005UL + 1442695040888963407UL;
    return value;
}

extern "C" Engine *make_engine()
{
    static Engine engine;
    return &engine;
}
