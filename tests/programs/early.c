/* A library whose constructor and destructor call another. */
void early_nothing(void);

int main(void)
{
    early_nothing();
    return 0;
}
